import Foundation
import HTTPTransport
import StreamTransport
import Synchronization
import TLSEngine

/// What the tasks of one session share.
///
/// All that loads do happens on the event loop of `pool`, in order; what is here besides may be used from any thread.
final class SessionCore: Sendable {
    /// Whether tasks may be made, and what becomes of the delegate.
    enum Phase {
        case open
        /// No new tasks; when the last has ended the delegate is told and dropped.
        case finishing
        case invalid
    }

    struct State {
        var phase = Phase.open
        var delegate: DelegateFace?
        var tasks: [Int: URLSessionTask] = [:]
        var lastIdentifier = 0
        var label: String?
        var secureContext: Result<TLSContext, TLSFailure>?
        var streamContext: Result<TLSContext, TLSFailure>?
    }

    /// The session's own: nobody changes it.
    let configuration: URLSessionConfiguration
    let pool: ConnectionPool
    let line: DelegateLine
    /// Those of the configuration.
    let protocolClasses: [URLProtocol.Type]
    /// The session of the program, which cannot be invalidated and asks the protocols that were registered.
    var isShared: Bool { self.sharing.load(ordering: .relaxed) }
    private let sharing = Atomic(false)
    /// On the loop: what was proven good for which part of which server.
    let authorizations = LoopState(AuthorizationMemory())
    /// On the loop: what is sent along with a request that says nothing itself.
    let plainFields: LoopState<[HeaderField]>
    /// Whether `plainFields` have an `Authorization`.
    let hasOwnAuthorization: Bool
    let proxies: ProxyChoice
    let resourceClock = ResourceClock()
    let state: Mutex<State>

    init(
        _ configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, queue: OperationQueue?
    ) {
        self.configuration = configuration
        self.protocolClasses = (configuration.protocolClasses ?? []).compactMap { $0 as? URLProtocol.Type }
        self.proxies = ProxyChoice(configuration)
        let plainFields = RequestDressing(configuration).plainFields
        self.plainFields = LoopState(plainFields)
        self.hasOwnAuthorization = plainFields.contains { $0.isNamed("authorization") }
        var settings = PoolSettings()
        settings.connectionsPerHost = max(1, configuration.httpMaximumConnectionsPerHost)
        if let permits = configuration.permitsAddress {
            settings.admits = { permits(URLSessionConfiguration.ServerAddress($0), $1) }
        }
        if let resolve = configuration.resolve { settings.resolve = resolve }
        let pool = ConnectionPool(settings: settings)
        self.pool = pool
        self.line = DelegateLine(queue, pool)
        self.state = Mutex(State(delegate: delegate.map { DelegateFace($0) }))
    }

    /// From now on this is the session of the program.
    func share() { self.sharing.store(true, ordering: .relaxed) }

    var delegate: DelegateFace? { self.state.withLock { $0.delegate } }

    /// The task's delegate, then the session's.
    func faces(for task: URLSessionTask) -> [DelegateFace] {
        let (own, shared) = (task.facts.withLock { $0.delegate }, self.delegate)
        return own == nil && shared == nil ? [] : [own, shared].compactMap(\.self)
    }

    /// What stream and WebSocket tasks ask for each address of a host; `nil` permits all.
    func permission(for host: String) -> ConnectAttempt.Permission? {
        guard let permits = self.configuration.permitsAddress else { return nil }
        return { address in permits(URLSessionConfiguration.ServerAddress(address), host) }
    }

    /// One context for all connections of the session, until it forgets them.
    func secureContext() -> Result<TLSContext, TLSFailure> {
        self.state.withLock { state in
            if let made = state.secureContext { return made }
            let made = Result { () throws(TLSFailure) in try TLSContext(try TLSConfiguration.of(self.configuration)) }
            state.secureContext = made
            return made
        }
    }

    /// The next request uses a new connection, and is verified anew.
    func forgetConnections() {
        self.pool.retireConnections()
        self.state.withLock { state in
            state.secureContext = nil
            state.streamContext = nil
        }
        self.pool.execute { self.authorizations.value = AuthorizationMemory() }
    }
}

extension TLSConfiguration {
    /// What a session asks of TLS. Versions below 1.2 are not spoken: a minimum below allows them in vain.
    /// - Throws: `.configuration` where nothing that is spoken lies between the bounds.
    static func of(_ configuration: URLSessionConfiguration) throws(TLSFailure) -> TLSConfiguration {
        var result = TLSConfiguration.client()
        let (lowest, highest) = (
            configuration.tlsMinimumSupportedProtocolVersion, configuration.tlsMaximumSupportedProtocolVersion
        )
        guard [.TLSv10, .TLSv11, .TLSv12, .TLSv13].contains(lowest), [.TLSv12, .TLSv13].contains(highest),
            lowest.rawValue <= highest.rawValue
        else {
            throw TLSFailure(
                .configuration,
                reasons: [
                    "TLS 1.2 and 1.3 are spoken, and none of them lies between tlsMinimumSupportedProtocolVersion "
                        + "(\(lowest)) and tlsMaximumSupportedProtocolVersion (\(highest))"
                ])
        }
        result.minimumVersion = lowest == .TLSv13 ? .tls13 : .tls12
        result.maximumVersion = highest == .TLSv13 ? .tls13 : .tls12
        result.applicationProtocols = ["http/1.1"]
        if let authorities = configuration.certificateAuthorities {
            result.trust = .only([.pem([UInt8](authorities))])
        }
        result.asksForDecision = true
        result.asksForClientCertificate = true
        return result
    }
}
