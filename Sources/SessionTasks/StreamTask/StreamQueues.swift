/// What a stream task needs only where reads and writes are queued; a relayed one never makes it.
final class StreamQueues {
    var reads = ReadQueue()
    var sends = SendQueue()
    var barriers: [UInt64: StreamTask.Barrier] = [:]
    /// Bytes taken from the transport at most while nobody reads; 0 leaves all in the kernel.
    var readAhead = 0
    /// Told that a direction was shut in order: reading by either end, writing by ours.
    var inputObserver: (() -> Void)?
    var outputObserver: (() -> Void)?

    func forgetObservers() {
        self.inputObserver = nil
        self.outputObserver = nil
    }
}
