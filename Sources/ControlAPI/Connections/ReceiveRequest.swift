/// POST …:receive: the next message, or bytes of a stream.
package struct ReceiveRequest: Codable, Sendable, Equatable, StrictlyRead {
    /// Stream: waits until so many are there, or the end. Default: 1.
    package var minimumBytes: Int?
    /// Stream: 1 to 1 MiB. Default: 64 KiB.
    package var maximumBytes: Int?
    /// How long to wait, 0 to 10 min. Default: 30 s.
    package var timeoutMs: Double?

    package init(
        minimumBytes: Int? = nil, maximumBytes: Int? = nil, timeoutMs: Double? = nil
    ) {
        self.minimumBytes = minimumBytes
        self.maximumBytes = maximumBytes
        self.timeoutMs = timeoutMs
    }

    package static let members = [
        "minimumBytes", "maximumBytes", "timeoutMs",
    ]
}
