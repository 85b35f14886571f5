import GatewayConfiguration
import GatewayCore
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTPTypesHTTP1
import StreamTransport
import TLSEngine

/// Sets up one connection of the REST interface: HTTP/1.1, optionally over TLS, with upgrade to WebSocket.
struct ControlChannel: ServerChildChannel {
    struct Value: ServerChildChannelValue {
        let http: HTTP1Channel.Value
        let peer: ConnectionPeer

        var channel: any Channel { self.http.channel }
    }

    private let http: HTTP1Channel
    private let tlsContext: @Sendable () -> TLSContext?
    private let isSocketFile: Bool
    private let table: ConnectionTable

    /// - Parameters:
    ///   - tlsContext: called for each connection; `nil` is plain HTTP.
    ///   - table: confined to the event loop that runs all connections.
    init(
        tlsContext: @escaping @Sendable () -> TLSContext?, isSocketFile: Bool, table: ConnectionTable,
        responder: @escaping HTTPChannelHandler.Responder
    ) {
        self.tlsContext = tlsContext
        self.isSocketFile = isSocketFile
        self.table = table
        var configuration = HTTP1Channel.Configuration(
            additionalChannelHandlers: [ExchangeTrackingHandler(), BadRequestProblemHandler()],
            idleTimeout: .seconds(60))
        configuration.httpDecoder.maxHeaderFieldSize = 16 << 10
        configuration.httpDecoder.maxHeaderListSize = 32 << 10
        configuration.httpDecoder.maxHeaderFieldCount = 128
        self.http = HTTP1Channel(responder: responder, configuration: configuration)
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let address = Self.text(channel.remoteAddress)
        // There is no address if the client reset the connection before accept: no client would read a response, and the
        // audit log could not name the client.
        guard self.isSocketFile || address != nil else {
            return channel.eventLoop.makeFailedFuture(ChannelError.eof)
        }
        let peer: ConnectionPeer
        do {
            let slot = try self.table.add(channel)
            peer = ConnectionPeer(address: self.isSocketFile ? nil : address, slot: slot)
            let pipeline = channel.pipeline.syncOperations
            if let context = self.tlsContext() {
                try pipeline.addHandler(SecureHandler(context))
                try pipeline.addHandler(PeerCertificateHandler(peer))
            }
            try pipeline.addHandler(UpgradableWire(on: channel.eventLoop))
            try pipeline.addHandler(RequestHeadTimeoutHandler(slot))
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
        let authority = self.isSocketFile ? "localhost" : Self.text(channel.localAddress)
        let http = self.http.setup(channel: channel, logger: logger).flatMapThrowing { http in
            let pipeline = channel.pipeline.syncOperations
            let codec = try pipeline.handler(type: HTTP1ToHTTPServerCodec.self)
            try pipeline.addHandler(RequestHeadHandler(ownAuthority: authority), position: .before(codec))
            return Value(http: http, peer: peer)
        }
        return self.isSocketFile ? PeerProcess.fetch(from: channel).map { peer.process = $0 }.flatMap { http } : http
    }

    private static func text(_ address: NIOCore.SocketAddress?) -> String? {
        address.flatMap { StreamTransport.SocketAddress($0) }?.unmapped.description
    }

    func handle(value: Value, logger: Logger) async {
        await ConnectionPeer.$current.withValue(value.peer) {
            await self.http.handle(value: value.http, logger: logger)
        }
    }
}

/// Decides which connections the control plane keeps at its connection limit.
///
/// The connection that has been idle longest, before its first request or between two, is closed in favour of a new one,
/// so that idle connections cannot lock callers out. While every slot serves a request, a few more connections are
/// admitted for probes only.
package struct ConnectionSlots: Sendable {
    /// Connections beyond the limit that may send requests without authentication, such as `/livez`.
    package static let probeLimit = 16

    package enum AdmissionResult: Hashable, Sendable {
        /// - Parameter closing: the idle connection to close in favour of the new one.
        case admitted(closing: UInt64?)
        case admittedForProbes(closing: UInt64?)
        /// All connections of this client, or all slots for probes, are serving requests.
        case refused
    }

    private struct Entry {
        let client: String?
        let isForProbes: Bool
        var isServing = false
        /// Sequence number of its admission or its last response; the lowest has been idle longest.
        var idleSince: UInt64
    }

    /// Concurrent connections, without those for probes.
    package var limit: Int
    /// Concurrent connections of one client address.
    package var clientLimit: Int
    private var entries: [UInt64: Entry] = [:]
    private var clients: [String: Int] = [:]
    private var sequence: UInt64 = 0

    package init(limit: Int, clientLimit: Int) {
        self.limit = limit
        self.clientLimit = clientLimit
    }

    package var count: Int { self.entries.count }

    /// Admits or refuses an accepted connection.
    /// - Parameters:
    ///   - identifier: unique among all connections.
    ///   - client: the client's address; `nil` on a Unix socket.
    package mutating func admit(_ identifier: UInt64, from client: String?) -> AdmissionResult {
        if let client, self.clients[client, default: 0] >= self.clientLimit {
            guard let oldest = self.longestIdle(where: { $0.client == client && !$0.isForProbes }) else {
                return .refused
            }
            self.replace(oldest, by: identifier, from: client)
            return .admitted(closing: oldest)
        }
        if self.entries.count < self.limit {
            self.add(identifier, from: client, isForProbes: false)
            return .admitted(closing: nil)
        }
        if let oldest = self.longestIdle(where: { !$0.isForProbes }) {
            self.replace(oldest, by: identifier, from: client)
            return .admitted(closing: oldest)
        }
        return self.admitForProbes(identifier, from: client)
    }

    private mutating func admitForProbes(_ identifier: UInt64, from client: String?) -> AdmissionResult {
        if self.entries.count < self.limit + Self.probeLimit {
            self.add(identifier, from: client, isForProbes: true)
            return .admittedForProbes(closing: nil)
        }
        guard let oldest = self.longestIdle(where: { $0.isForProbes }) else { return .refused }
        self.remove(oldest)
        self.add(identifier, from: client, isForProbes: true)
        return .admittedForProbes(closing: oldest)
    }

    /// An authorized request begins on this connection.
    package mutating func requestStarted(_ identifier: UInt64) {
        self.entries[identifier]?.isServing = true
    }

    /// The response is written; the connection is idle again.
    package mutating func requestFinished(_ identifier: UInt64) {
        self.sequence += 1
        self.entries[identifier]?.isServing = false
        self.entries[identifier]?.idleSince = self.sequence
    }

    package mutating func remove(_ identifier: UInt64) {
        guard let entry = self.entries.removeValue(forKey: identifier), let client = entry.client else { return }
        let others = self.clients[client, default: 1] - 1
        self.clients[client] = others > 0 ? others : nil
    }

    private mutating func add(_ identifier: UInt64, from client: String?, isForProbes: Bool) {
        self.sequence += 1
        self.entries[identifier] = Entry(client: client, isForProbes: isForProbes, idleSince: self.sequence)
        if let client { self.clients[client, default: 0] += 1 }
    }

    private mutating func replace(_ former: UInt64, by identifier: UInt64, from client: String?) {
        self.remove(former)
        self.add(identifier, from: client, isForProbes: false)
    }

    private func longestIdle(where isCandidate: (Entry) -> Bool) -> UInt64? {
        self.entries.filter { !$0.value.isServing && isCandidate($0.value) }
            .min { $0.value.idleSince < $1.value.idleSince }?.key
    }
}

/// The slot of one connection in the connection table.
final class ConnectionSlot: Sendable {
    /// The connection exceeds the limit and may only send requests without authentication.
    let isForProbes: Bool
    private let identifier: UInt64
    private let table: ConnectionTable

    init(_ identifier: UInt64, in table: ConnectionTable, isForProbes: Bool) {
        self.identifier = identifier
        self.table = table
        self.isForProbes = isForProbes
    }

    func requestStarted() {
        self.table.change { $0.requestStarted(self.identifier) }
    }

    func requestFinished() {
        self.table.change { $0.requestFinished(self.identifier) }
    }
}

/// The open connections of the control plane, whose server has one event loop.
final class ConnectionTable: Sendable {
    private struct State {
        var slots: ConnectionSlots
        var channels: [UInt64: any Channel] = [:]
        var last: UInt64 = 0
    }

    private let eventLoop: any EventLoop
    private let state: NIOLoopBoundBox<State>

    init(on eventLoop: any EventLoop, limit: Int, clientLimit: Int) {
        self.eventLoop = eventLoop
        let slots = ConnectionSlots(limit: limit, clientLimit: clientLimit)
        self.state = .makeBoxSendingValue(State(slots: slots), eventLoop: eventLoop)
    }

    /// Changed limits take effect with the next accepted connection. From any thread.
    func change(_ change: @escaping @Sendable (inout ConnectionSlots) -> Void) {
        self.eventLoop.execute { change(&self.state.value.slots) }
    }

    /// Gives an accepted connection a slot, which may close another connection.
    /// - Throws: where there is no slot; the caller then closes the channel.
    func add(_ channel: any Channel) throws -> ConnectionSlot {
        self.state.value.last += 1
        let identifier = self.state.value.last
        let admission = self.state.value.slots.admit(identifier, from: Self.client(channel.remoteAddress))
        switch admission {
        case .refused: throw ChannelError.connectPending
        case .admitted(let closing), .admittedForProbes(let closing):
            if let closing { self.state.value.channels.removeValue(forKey: closing)?.close(promise: nil) }
        }
        self.state.value.channels[identifier] = channel
        channel.closeFuture.assumeIsolated().whenComplete { _ in self.remove(identifier) }
        let isForProbes = if case .admittedForProbes = admission { true } else { false }
        return ConnectionSlot(identifier, in: self, isForProbes: isForProbes)
    }

    private func remove(_ identifier: UInt64) {
        self.state.value.channels[identifier] = nil
        self.state.value.slots.remove(identifier)
    }

    /// An IPv4 address, or the /64 network of an IPv6 address, all of which one client usually controls.
    private static func client(_ address: NIOCore.SocketAddress?) -> String? {
        guard let text = address?.ipAddress else { return nil }
        guard case .ipv6(let high, let low, _, _)? = StreamTransport.SocketAddress(literal: text, port: 0) else {
            return text
        }
        return high == 0 ? "\(low)" : "\(high)/64"
    }
}

/// Stops accepting while the process is short of descriptors, and retries after a pause; new connections wait in the
/// kernel's accept queue meanwhile. A handler of the listening channel.
final class AcceptGate: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel
    typealias OutboundIn = Never

    private static let pause = TimeAmount.milliseconds(50)
    /// Between two lines about one shortage, which may come and go many times in a second.
    private static let logPause = TimeAmount.seconds(60)

    private let reserve: DescriptorReserve
    private let log: TunnelLog
    /// Retries the read.
    private var timer: Scheduled<Void>?
    private var nextLine = NIODeadline.distantPast

    init(_ reserve: DescriptorReserve, log: TunnelLog) {
        self.reserve = reserve
        self.log = log
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.timer?.cancel()
        self.timer = nil
    }

    func read(context: ChannelHandlerContext) {
        guard self.timer == nil else { return }
        guard self.reserve.isAvailable() else { return self.wait(context) }
        context.read()
    }

    /// Handles errors of accept(2). They must not propagate, as the server stops at any error.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? IOError else { return context.fireErrorCaught(error) }
        guard SystemError(error.errnoCode).isExhaustion else {
            return self.log.log(
                "the control plane could not accept a connection: \(SystemError(error.errnoCode))", level: .warning)
        }
        if error.errnoCode == SystemError.processDescriptorsExhausted.number { self.reserve.exhausted() }
        self.wait(context)
    }

    /// Switches `autoRead` off: a pending read would otherwise fail again in every turn of the event loop.
    private func wait(_ context: ChannelHandlerContext) {
        guard self.timer == nil else { return }
        let now = context.eventLoop.now
        if now >= self.nextLine {
            self.nextLine = now + Self.logPause
            self.log.log(
                "the control plane accepts no connections for now: \(SystemError.processDescriptorsExhausted)",
                level: .warning)
        }
        try? context.channel.syncOptions?.setOption(.autoRead, value: false)
        self.timer = context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) { self.retry(context) }
    }

    private func retry(_ context: ChannelHandlerContext) {
        self.timer = nil
        guard context.channel.isActive else { return }
        guard self.reserve.isAvailable() else { return self.wait(context) }
        try? context.channel.syncOptions?.setOption(.autoRead, value: true)
        context.read()
    }
}

/// Stores the client certificate of the TLS handshake in the `ConnectionPeer`.
final class PeerCertificateHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let peer: ConnectionPeer

    init(_ peer: ConnectionPeer) {
        self.peer = peer
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let metadata = event as? TLSMetadata, let certificate = metadata.peerChain.first {
            self.peer.certificate = CertificateNames(der: certificate)
        }
        context.fireUserInboundEventTriggered(event)
    }
}
