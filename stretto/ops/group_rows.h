// group_rows(which, batch, experts, rows): where the rows that tokens chose go, so that each lies with its expert.
//
//   const Dim rows = batch.like("rows", {.plus = seq, .size = batch.size * seq.size * choice.size}).grouped(experts);
//   const GroupedRows g = group_rows(which, batch, experts, rows);       // which{batch seq choice}, i32
//   const Tensor x = dispatch(h, g, {rows, model});                      // one row for each that a token chose
//   const Tensor u = choose(x, w, g.expert, experts, {rows, ff});
//   const Tensor y = combine(v, g, {batch, seq, model});                 // v{rows model}; summed over choice
//
// Rows stay in the order of tokens. Where experts are split, those for one rank's follow each other by the rank they
// come from, as they stand there: bits depend on nothing else. A rank has room for so many; who finds none is lost, and
// what he would have got is NaN.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct GroupRowsAttrs {
  DimId batch, whole;  // of the result; of the operand, which has that of all members, one after the other
  DimId rows, from, to;
  i64 experts = 0;
  static constexpr void fields(auto& s, auto f) {
    f("batch", s.batch);
    f("whole", s.whole);
    f("rows", s.rows);
    f("from", s.from);
    f("to", s.to);
    f("experts", s.experts);
  }
};

struct GroupedRows {
  DimId rows;
  Tensor place;        // {batch seq choice}: which of the rows that leave this rank, by the ranks they go to; -1: lost
  Tensor expert;       // {rows}: of those that came; -1: nobody did
  Tensor there, back;  // how many go from whom to whom
  Tensor lost;         // {batch}: how many of its rows are, f32
};
GroupedRows group_rows(Tensor which, const Dim& batch, const Dim& experts, const Dim& rows);
// The local form, made by shard/: the results of the node.
Tensor group_rows(Tensor which, const GroupRowsAttrs&);

}  // namespace stretto
