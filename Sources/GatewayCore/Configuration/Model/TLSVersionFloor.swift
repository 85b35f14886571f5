/// The oldest TLS that is spoken.
package enum TLSVersionFloor: String, Sendable, Equatable, CaseIterable {
    case tls12 = "1.2"
    case tls13 = "1.3"
}
