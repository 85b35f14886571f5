/// What became of what was to be sent.
package struct SendAnswer: Codable, Sendable, Equatable {
    /// `sent`: the kernel took every byte. `queued`: not all in time; it stays in the queue.
    package var state: String
    /// Of the message.
    package var sizeBytes: Int
    /// What still waits on the connection.
    package var queuedSendBytes: Int
    /// The connection is suspended: what waits goes out when it is resumed.
    package var suspended: Bool

    package init(
        state: String, sizeBytes: Int, queuedSendBytes: Int, suspended: Bool
    ) {
        self.state = state
        self.sizeBytes = sizeBytes
        self.queuedSendBytes = queuedSendBytes
        self.suspended = suspended
    }
}
