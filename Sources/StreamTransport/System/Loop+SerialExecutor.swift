/// An actor may name a loop as its executor, and then runs on the loop's thread, between its events.
extension Loop: SerialExecutor {
    package func enqueue(_ job: consuming ExecutorJob) {
        self.add(UnownedJob(job))
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        unsafe UnownedSerialExecutor(ordinary: self)
    }

    func runJob(_ job: UnownedJob) {
        unsafe job.runSynchronously(on: self.asUnownedSerialExecutor())
    }

    package func checkIsolated() {
        precondition(self.isCurrent, "this code belongs on its loop's thread")
    }
}
