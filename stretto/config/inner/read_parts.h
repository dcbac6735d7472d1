// What reading a run does with one section alone.
//
//   read_graph_model(section, run.model);        // [model] graph = "gpt.json"
#pragma once
#include <initializer_list>
#include <string_view>

#include "stretto/config/run.h"
#include "stretto/formats/fields.h"

namespace stretto {

// A mistake that a function of the library found, at the place of the key that led to it.
void blame(FieldReader& section, std::string_view key, const Error& e);
// The same of a file that the key names: with the place in it.
void blame_file(FieldReader& section, std::string_view key, const Error& e);

// A graph says all of a model: other keys of the section are none of its.
void read_graph_model(FieldReader& section, ModelSection& to);
// Keys that only families have.
void refuse_beside_graph(FieldReader& section, std::initializer_list<std::string_view> keys, std::string_view hint);

// Runs of earlier versions have `poll`, and mostly ask for nothing with it.
void without_poll(FieldReader& section);

}  // namespace stretto
