#ifndef SLUICE_CRUNLOOP_H
#define SLUICE_CRUNLOOP_H

// Two functions of Core Foundation, which is part of Foundation on Linux: Foundation itself offers no way to let a run
// loop go on. By names of our own, so that they stand beside Core Foundation's header where a program imports that.
void *sluice_run_loop_current(void) __asm__("CFRunLoopGetCurrent");
void sluice_run_loop_stop(void *run_loop) __asm__("CFRunLoopStop");

// Lets the innermost run of this thread's run loop return, as it does behind the event of a source.
static inline void sluice_run_loop_return(void) {
    sluice_run_loop_stop(sluice_run_loop_current());
}

#endif
