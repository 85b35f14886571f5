/// What a request's target asks for (RFC 6455 §3 and §4.2.1, RFC 9112 §3.2).
struct ResourceName: Equatable {
    /// Path and query, beginning with `/`.
    let name: String
    /// The host of an absolute target, which then counts instead of the Host field (RFC 9112 §3.2.2).
    let authority: String?

    static func read(_ target: String) throws(HandshakeRefusal) -> ResourceName {
        guard !target.utf8.contains(UInt8(ascii: "#")) else {
            throw .malformed("The target has a fragment; leave out '#' and what follows it, or write it as %23.")
        }
        if target.utf8.first == UInt8(ascii: "/") { return ResourceName(name: target, authority: nil) }
        for scheme in ["http://", "https://", "ws://", "wss://"] {
            guard String(target.prefix(scheme.count)).matchesIgnoringCase(scheme) else { continue }
            let rest = target.dropFirst(scheme.count)
            let authority = rest.prefix { $0 != "/" && $0 != "?" }
            guard Authority.isWellFormed(authority) else { break }
            let name = rest.dropFirst(authority.count)
            return ResourceName(name: name.hasPrefix("/") ? String(name) : "/" + name, authority: String(authority))
        }
        throw .malformed("The target is neither a path nor an address of http, https, ws or wss.")
    }
}
