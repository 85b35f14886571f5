import Synchronization

/// What many connections of one role have in common: certificates, trust, sessions. May be used from any thread.
public final class TLSContext: Sendable {
    private let current: Mutex<ContextMaterial>

    /// Reads everything that the configuration names.
    /// - Throws: `.configuration` or what reading certificates throws; the failure names the file at fault.
    public init(_ configuration: TLSConfiguration) throws(TLSFailure) {
        self.current = Mutex(try ContextMaterial(configuration, replacing: nil))
    }

    /// Replaces everything at once, files read anew. Handshakes that begin later use the new material; connections that
    /// exist are not touched. Tickets given out earlier are honoured unless what is asked of peers changed.
    /// - Throws: as `init`; the old material then stays in use.
    public func reload(_ configuration: TLSConfiguration) throws(TLSFailure) {
        let material = try ContextMaterial(configuration, replacing: self.material)
        self.current.withLock { $0 = material }
    }

    public var configuration: TLSConfiguration { self.material.configuration }

    /// Sessions that a client keeps now.
    public var keptSessions: Int { self.material.sessions.count }

    var material: ContextMaterial { self.current.withLock { $0 } }
}
