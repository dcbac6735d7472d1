// Everything a user's program needs: #include "stretto/stretto.h".
#pragma once
#include "stretto/compile/compile.h"
#include "stretto/ops/all.h"
#include "stretto/optim/muon.h"
#include "stretto/optim/optimizer.h"
#include "stretto/schedule/builders.h"
#include "stretto/trace/trace.h"
#include "stretto/train/snapshot.h"
#include "stretto/train/trainer.h"
