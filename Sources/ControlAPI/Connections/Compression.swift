/// permessage-deflate on one connection.
package struct Compression: Codable, Sendable, Equatable {
    /// Payload bytes for each byte on the wire, frame headers included; `nil` while nothing was sent.
    package var sentRatio: Double?

    package init(
        sentRatio: Double? = nil
    ) {
        self.sentRatio = sentRatio
    }
}
