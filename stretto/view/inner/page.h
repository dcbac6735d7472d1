// The fixed parts of the HTML page: what html() puts around the data.
#pragma once
#include <string_view>

namespace stretto {

extern const std::string_view page_style;   // contents of <style>
extern const std::string_view page_script;  // contents of <script>; reads the JSON of <script id="data">

}  // namespace stretto
