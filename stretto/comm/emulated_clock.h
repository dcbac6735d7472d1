// The time of a rank whose device is emulated: that of its thread, less what the system has woken it too late. Its
// tasks, messages and collectives begin and end in this time, so that a timer's or a busy processor's delays do not
// add up. Times are those of the steady clock, which the processes of one machine share.
//
//   const double end = emulated_now() + seconds;
//   pass_until(end);                                 // emulated_now() is `end`, however late it is
//
// On threads that nobody has told to make up for delays, it is now().
#pragma once
#include "stretto/comm/stop_flag.h"

namespace stretto {

double emulated_now();
// Sleeps, if that is not over yet, in slices, so that a stop is noticed. Returns the seconds slept.
double pass_until(double time, const StopFlag& stopped = {});

// From here on this thread's delays are made up for; those so far are not.
void make_up_for_delays();

}  // namespace stretto
