import GatewayCore
import HTTPTransport
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTPTypesHTTP1
import StreamTransport
import Synchronization
import TLSEngine

/// A connection of the REST interface: HTTP/1.1, over TLS or not, over a wire that can leave HTTP behind.
struct ControlChannel: ServerChildChannel {
    struct Value: ServerChildChannelValue {
        let http: HTTP1Channel.Value
        let peer: ConnectionPeer

        var channel: any Channel { self.http.channel }
    }

    private let http: HTTP1Channel
    private let secure: @Sendable () -> TLSContext?
    private let isSocketFile: Bool
    private let table: ConnectionTable

    /// - Parameters:
    ///   - secure: for `https://`; asked for each connection.
    ///   - table: of the event loop that all connections are on.
    init(
        secure: @escaping @Sendable () -> TLSContext?, isSocketFile: Bool, table: ConnectionTable,
        responder: @escaping HTTPChannelHandler.Responder
    ) {
        self.secure = secure
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
        // The kernel tells no address of a client that has reset the connection before it was accepted: nobody would
        // read an answer, and the audit log could not say who asked.
        guard self.isSocketFile || address != nil else {
            return channel.eventLoop.makeFailedFuture(ChannelError.eof)
        }
        let peer: ConnectionPeer
        do {
            let place = try self.table.add(channel)
            peer = ConnectionPeer(address: self.isSocketFile ? nil : address, place: place)
            let pipeline = channel.pipeline.syncOperations
            if let secure = self.secure() {
                try pipeline.addHandler(SecureHandler(secure))
                try pipeline.addHandler(PeerCertificateHandler(peer))
            }
            try pipeline.addHandler(UpgradableWire(on: channel.eventLoop))
            try pipeline.addHandler(RequestHeadTimeoutHandler(place))
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
        guard let address, let ip = address.ipAddress, let port = address.port else { return nil }
        return StreamTransport.SocketAddress(literal: ip, port: UInt16(clamping: port))?.unmapped.description
    }

    func handle(value: Value, logger: Logger) async {
        await ConnectionPeer.$current.withValue(value.peer) {
            await self.http.handle(value: value.http, logger: logger)
        }
    }
}

/// Decides which connections the control plane keeps when more come than it has places for.
///
/// A connection that waits for a request, its first or another, gives way: the one that has waited longest is closed.
/// So connections that never ask for anything cannot keep callers out. Where every place is taken by a request that is
/// being carried out, a few more connections are taken for probes alone.
package struct ConnectionSlots: Sendable {
    /// Connections beyond the limit that may ask for what needs no rights, such as `/livez`.
    package static let probeLimit = 16

    package enum AdmissionResult: Hashable, Sendable {
        /// - Parameter closing: the connection that gives way.
        case admitted(closing: UInt64?)
        /// As `taken`, for probes alone.
        case admittedForProbes(closing: UInt64?)
        /// All connections of this client have requests under way, or all places for probes do.
        case refused
    }

    private struct Entry {
        let client: String?
        let isForProbes: Bool
        var isServing = false
        /// When it came, or was last answered; a higher one is younger.
        var turn: UInt64
    }

    /// Connections at once, without those for probes.
    package var limit: Int
    /// Connections of one address.
    package var clientLimit: Int
    private var entries: [UInt64: Entry] = [:]
    private var clients: [String: Int] = [:]
    private var turn: UInt64 = 0

    package init(limit: Int, clientLimit: Int) {
        self.limit = limit
        self.clientLimit = clientLimit
    }

    package var count: Int { self.entries.count }

    /// A connection was accepted.
    /// - Parameters:
    ///   - identifier: a new one.
    ///   - client: where it comes from; `nil` on a Unix socket, where nobody has an address.
    package mutating func admit(_ identifier: UInt64, from client: String?) -> AdmissionResult {
        if let client, self.clients[client, default: 0] >= self.clientLimit {
            guard let oldest = self.oldestWaiting(where: { $0.client == client && !$0.isForProbes }) else {
                return .refused
            }
            self.replace(oldest, by: identifier, from: client)
            return .admitted(closing: oldest)
        }
        if self.entries.count < self.limit {
            self.add(identifier, from: client, isForProbes: false)
            return .admitted(closing: nil)
        }
        if let oldest = self.oldestWaiting(where: { !$0.isForProbes }) {
            self.replace(oldest, by: identifier, from: client)
            return .admitted(closing: oldest)
        }
        return self.arrivedForProbes(identifier, from: client)
    }

    private mutating func arrivedForProbes(_ identifier: UInt64, from client: String?) -> AdmissionResult {
        if self.entries.count < self.limit + Self.probeLimit {
            self.add(identifier, from: client, isForProbes: true)
            return .admittedForProbes(closing: nil)
        }
        guard let oldest = self.oldestWaiting(where: { $0.isForProbes }) else { return .refused }
        self.remove(oldest)
        self.add(identifier, from: client, isForProbes: true)
        return .admittedForProbes(closing: oldest)
    }

    /// A caller with the rights for it has a request carried out on this connection.
    package mutating func requestStarted(_ identifier: UInt64) {
        self.entries[identifier]?.isServing = true
    }

    /// The request was answered; the connection waits for another.
    package mutating func requestFinished(_ identifier: UInt64) {
        self.turn += 1
        self.entries[identifier]?.isServing = false
        self.entries[identifier]?.turn = self.turn
    }

    package mutating func remove(_ identifier: UInt64) {
        guard let entry = self.entries.removeValue(forKey: identifier), let client = entry.client else { return }
        let others = self.clients[client, default: 1] - 1
        self.clients[client] = others > 0 ? others : nil
    }

    private mutating func add(_ identifier: UInt64, from client: String?, isForProbes: Bool) {
        self.turn += 1
        self.entries[identifier] = Entry(client: client, isForProbes: isForProbes, turn: self.turn)
        if let client { self.clients[client, default: 0] += 1 }
    }

    private mutating func replace(_ former: UInt64, by identifier: UInt64, from client: String?) {
        self.remove(former)
        self.add(identifier, from: client, isForProbes: false)
    }

    private func oldestWaiting(where fits: (Entry) -> Bool) -> UInt64? {
        self.entries.filter { !$0.value.isServing && fits($0.value) }.min { $0.value.turn < $1.value.turn }?.key
    }
}

/// The place of one connection.
final class ConnectionSlot: Sendable {
    /// The connection is one too many, and may ask for what needs no rights alone.
    let isForProbes: Bool
    private let identifier: UInt64
    private let table: ConnectionTable

    init(_ identifier: UInt64, in table: ConnectionTable, isForProbes: Bool) {
        self.identifier = identifier
        self.table = table
        self.isForProbes = isForProbes
    }

    func requestStarted() {
        self.table.requestStarted(self.identifier)
    }

    func requestFinished() {
        self.table.requestFinished(self.identifier)
    }
}

/// The connections of the control plane, and the place of each among them. Confined to the one event loop of the
/// server.
final class ConnectionTable: @unchecked Sendable {
    private let eventLoop: any EventLoop
    private var slots: ConnectionSlots
    private var channels: [UInt64: any Channel] = [:]
    private var last: UInt64 = 0

    /// - Parameter limit: connections at once; fewer where the process has few descriptors.
    init(on eventLoop: any EventLoop, limit: Int, clientLimit: Int) {
        self.eventLoop = eventLoop
        self.slots = ConnectionSlots(limit: limit, clientLimit: clientLimit)
    }

    /// Other limits from now on; nobody is closed before the next newcomer. From any thread.
    func set(limit: Int, clientLimit: Int) {
        self.eventLoop.execute {
            self.slots.limit = limit
            self.slots.clientLimit = clientLimit
        }
    }

    /// Gives an accepted connection a place, for which another may be closed.
    /// - Throws: where there is none; the channel is then closed.
    func add(_ channel: any Channel) throws -> ConnectionSlot {
        self.eventLoop.assertInEventLoop()
        self.last += 1
        let identifier = self.last
        let answer = self.slots.admit(identifier, from: Self.client(channel.remoteAddress))
        switch answer {
        case .refused: throw ChannelError.connectPending
        case .admitted(let closing), .admittedForProbes(let closing):
            if let closing { self.channels.removeValue(forKey: closing)?.close(promise: nil) }
        }
        self.channels[identifier] = channel
        channel.closeFuture.assumeIsolated().whenComplete { _ in self.remove(identifier) }
        let isForProbes = if case .admittedForProbes = answer { true } else { false }
        return ConnectionSlot(identifier, in: self, isForProbes: isForProbes)
    }

    private func remove(_ identifier: UInt64) {
        self.channels[identifier] = nil
        self.slots.remove(identifier)
    }

    /// From any thread.
    func requestStarted(_ identifier: UInt64) {
        self.eventLoop.execute { self.slots.requestStarted(identifier) }
    }

    func requestFinished(_ identifier: UInt64) {
        self.eventLoop.execute { self.slots.requestFinished(identifier) }
    }

    /// An IPv4 address, or the network of an IPv6 one: whoever has one address of a /64 has them all.
    private static func client(_ address: NIOCore.SocketAddress?) -> String? {
        guard let text = address?.ipAddress else { return nil }
        guard case .ipv6(let high, let low, _, _)? = StreamTransport.SocketAddress(literal: text, port: 0) else {
            return text
        }
        return high == 0 ? "\(low)" : "\(high)/64"
    }
}

/// In the pipeline of the listening channel: accepts while there are descriptors to spare, and tries again in a while
/// where there are none. Newcomers wait in the kernel's queue.
final class AcceptGate: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel
    typealias OutboundIn = Never

    private static let pause = TimeAmount.milliseconds(50)

    private let reserve: DescriptorReserve
    private let log: TunnelLog
    /// Owed to the channel when there is room again.
    private var timer: Scheduled<Void>?
    private var hasLogged = false

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

    /// What accept(2) met. It must not go on: behind it the server takes any error for its end.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? IOError, SystemError(error.errnoCode).isExhaustion else {
            return context.fireErrorCaught(error)
        }
        if error.errnoCode == SystemError.processDescriptorsExhausted.number { self.reserve.exhausted() }
        self.wait(context)
    }

    /// Not only the next read is held back: one that is under way would meet the same error in every turn of its loop.
    private func wait(_ context: ChannelHandlerContext) {
        guard self.timer == nil else { return }
        if !self.hasLogged {
            self.hasLogged = true
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
        self.hasLogged = false
        try? context.channel.syncOptions?.setOption(.autoRead, value: true)
        context.read()
    }
}

/// Notes whose certificate the client showed in its TLS handshake.
final class PeerCertificateHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let peer: ConnectionPeer

    init(_ peer: ConnectionPeer) {
        self.peer = peer
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let facts = event as? TLSMetadata, let own = facts.peerChain.first {
            self.peer.certificate = CertificateNames(der: own)
        }
        context.fireUserInboundEventTriggered(event)
    }
}
