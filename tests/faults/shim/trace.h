// What the shim writes for every change of the disk: this, two names, and bytes.
#pragma once

namespace stretto::test {

struct TraceHead {
  // c a file is new, t is emptied; w bytes are written at `offset` (-1: at its end); l its length is `offset`; s it, or
  // a folder, is made durable; r one becomes the other, x they change places; m a folder is new; u one is removed.
  char op;
  unsigned one, other;  // bytes of names
  long offset, bytes;
};

}  // namespace stretto::test
