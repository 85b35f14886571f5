/// What became of what was to be sent.
package struct SendAnswer: Codable, Sendable, Equatable {
    /// `sent`: the kernel took every byte. `queued`: not all in time; it stays in the queue.
    package var state: String
    /// Of the message.
    package var bytes: Int
    /// What still waits on the connection.
    package var queuedSendBytes: Int

    package init(
        state: String, bytes: Int, queuedSendBytes: Int
    ) {
        self.state = state
        self.bytes = bytes
        self.queuedSendBytes = queuedSendBytes
    }
}
