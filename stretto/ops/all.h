// Every op's Tensor function.
#pragma once
