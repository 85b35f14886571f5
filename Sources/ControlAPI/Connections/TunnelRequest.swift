/// POST /v1/connections: two connections to open, and to join to a tunnel.
package struct TunnelRequest: Codable, Sendable, Equatable, StrictlyRead {
    package var downstream: OpenRequest
    package var upstream: OpenRequest
    /// How a byte stream on one side and messages on the other stand for each other: `binary`, the default, `text`,
    /// `lines`, `length-prefixed` or `base64`.
    package var framing: String?
    /// What happens when one direction is finished: `hold`, `close`, the default, or `signal`.
    package var halfClose: String?
    /// A tunnel that carried nothing for this long ends; 0 never. Default: a day; 1 s to 365 days.
    package var idleTimeoutMs: Double?
    /// A tunnel this old ends; 0 never. Default: 30 days; 1 s to 365 days.
    package var maximumAgeMs: Double?

    package init(
        downstream: OpenRequest, upstream: OpenRequest, framing: String? = nil, halfClose: String? = nil,
        idleTimeoutMs: Double? = nil, maximumAgeMs: Double? = nil
    ) {
        self.downstream = downstream
        self.upstream = upstream
        self.framing = framing
        self.halfClose = halfClose
        self.idleTimeoutMs = idleTimeoutMs
        self.maximumAgeMs = maximumAgeMs
    }

    package static let nested: [String: any StrictlyRead.Type] = [
        "downstream": OpenRequest.self, "upstream": OpenRequest.self,
    ]
    package static let members = [
        "downstream", "upstream", "framing", "halfClose", "idleTimeoutMs", "maximumAgeMs",
    ]
}
