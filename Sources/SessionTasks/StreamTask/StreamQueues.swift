/// What a stream task needs only where reads and writes are queued; a relayed one never makes it.
final class StreamQueues {
    var reads = ReadQueue()
    var sends = SendQueue()
    var barriers: [UInt64: StreamTask.Barrier] = [:]
}
