/// The form of a PROXY protocol header.
package enum ProxyProtocolVersion: String, Sendable, Equatable, CaseIterable {
    /// A line of text.
    case v1
    /// Binary.
    case v2
}
