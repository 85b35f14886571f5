import Foundation
import HTTPTransport
import HTTPTypes
import SessionTasks
import StreamTransport
import WireText

/// The networks that a load uses, and waiting for one.
extension HTTPLoad {
    func prepareNetworks(_ exchange: inout ExchangeRequest) {
        let core = self.core
        exchange.path = core.networkSettings.path
        exchange.path.isReported = exchange.isMeasured
        exchange.needsAuthenticatedName = core.networkSettings.requiresDNSSEC
        let restrictions = self.request.restrictions
        if !restrictions.isEmpty {
            exchange.path.forbidden.formUnion(restrictions.forbiddenClasses)
            if restrictions.contains(.dnssec) { exchange.needsAuthenticatedName = true }
        }
        guard core.networkSettings.concernConnections else { return }
        self.stopWaiting()
        exchange.allowsEarlyData = core.networkSettings.sendsEarlyData && self.isSafeAsEarlyData
        // Only the first connection is waited for, and on the last way to the server.
        exchange.waitsForConnectivity = core.networkSettings.waits && !self.hasConnected && self.routes.count < 2
    }

    /// This machine has no way to the server of the proxy script.
    /// - Returns: whether the load continues when it has one.
    func waitsForProxyScript() -> Bool {
        guard self.core.networkSettings.waits, !self.hasConnected, let loop = self.core.executor.pool?.loop else {
            return false
        }
        let wait = self.pathWait ?? PathWait(on: loop) { [loader] in loader.transfer.isSuspended }
        self.pathWait = wait
        guard wait.wait(after: .offline(.noRoute(.networkUnreachable)), retry: { self.chooseRoutes() }) else {
            return false
        }
        self.waitingForConnectivity()
        return true
    }

    /// If the settings concern connections.
    func connected(_ connection: ConnectionMetadata) {
        self.hasConnected = true
        if self.earlyData != .refused { self.earlyData = connection.sendsEarlyData ? .sent : .none }
    }

    private var isSafeAsEarlyData: Bool {
        // An authentication of the connection begins behind the handshake.
        self.earlyData != .refused && self.lease == nil && self.body.isNone
            && (self.method == .get || self.method == .head)
    }

    /// Whether the name can be looked up here, if that has to be with DNSSEC: not where a proxy forwards the request.
    func mayAuthenticateName(_ exchange: ExchangeRequest) -> Bool {
        guard exchange.proxy?.method == .forwarding else { return true }
        return SocketAddress(literal: exchange.origin.host, port: exchange.origin.port) != nil
    }

    func failForForwardedName() {
        self.fail(.dnsLookupFailed, "The proxy would look up the server's name, and not with DNSSEC.")
    }

    /// RFC 8470 §5.2: the server wants a request that was sent as early data again, behind the handshake.
    /// - Returns: whether the request is sent again.
    func repeatTooEarly() -> Bool {
        guard self.earlyData == .sent else { return false }
        self.earlyData = .refused
        self.abandonAttempt()
        self.sendBody()
        return true
    }

    func stopWaiting() {
        self.pathWait?.end()
        self.pathWait = nil
    }

    func waitingForConnectivity() { self.loader.waitingForConnectivity() }
}

/// Whether the request of a load went as early data of TLS 1.3.
enum EarlyDataUse {
    case none
    case sent
    /// The server answered 425 (Too Early).
    case refused
}

/// The settings of a configuration that concern networks, read once.
struct NetworkSettings {
    /// Without the requests' own.
    let path: PathOptions
    let waits: Bool
    let requiresDNSSEC: Bool
    let sendsEarlyData: Bool
    /// Whether a load has to know of its connections.
    let concernConnections: Bool

    init(_ configuration: URLSessionConfiguration) {
        var path = PathOptions()
        path.usesMultipath = configuration.multipathServiceType != .none
        if !configuration.allowsCellularAccess { path.forbidden.insert(.cellular) }
        if !configuration.allowsExpensiveNetworkAccess { path.forbidden.insert(.expensive) }
        if !configuration.allowsConstrainedNetworkAccess { path.forbidden.insert(.constrained) }
        self.path = path
        self.waits = configuration.waitsForConnectivity
        self.requiresDNSSEC = configuration.requiresDNSSECValidation
        self.sendsEarlyData = configuration.enablesEarlyData
        self.concernConnections = configuration.waitsForConnectivity || configuration.enablesEarlyData
    }

    /// - Parameters:
    ///   - request: its own settings count too; `nil` for a stream task.
    ///   - isReported: whether metrics are collected.
    func path(for request: URLRequest?, isReported: Bool) -> PathOptions {
        var path = self.path
        path.isReported = isReported
        if let request { path.forbidden.formUnion(request.restrictions.forbiddenClasses) }
        return path
    }
}
