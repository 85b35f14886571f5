import StreamTransport

/// Where a task connects to, and what happens before its own first byte.
package struct OpeningTarget: Sendable {
    package var place: ConnectTarget
    package var socket = SocketOptions()
    /// For name resolution and connecting together.
    package var connectTimeout: Duration = .seconds(10)
    /// Sent in the clear before everything else, such as a PROXY header.
    package var preamble: [UInt8] = []
    /// TLS from the first byte (after the preamble); `nil` for none.
    package var secure: SecureSettings?
    /// Asked of each address before it is tried; `nil` permits all.
    package var permits: ConnectAttempt.Permission?
    /// Told of each step, on the loop, before who opens learns of it.
    package var watch: (@Sendable (OpeningStep) -> Void)?

    package init(_ place: ConnectTarget) {
        self.place = place
    }
}
