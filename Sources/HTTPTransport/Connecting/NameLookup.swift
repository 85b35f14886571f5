import NIOCore
import NIOPosix
import StreamTransport

/// The resolver of NIO's happy eyeballs: uses the pool's name lookup, and records its times and its failure.
///
/// Confined to its event loop; serves one attempt.
final class NameLookup: Resolver, @unchecked Sendable {
    typealias Completion = @Sendable (Result<[StreamTransport.SocketAddress], ResolutionFailure>) -> Void
    typealias Resolve = @Sendable (String, UInt16, @escaping Completion) -> Void

    /// Most addresses tried; the rest of a longer list is ignored.
    private static let addressLimit = 16

    private let eventLoop: any EventLoop
    private let resolve: Resolve
    private let admits: (StreamTransport.SocketAddress) -> Bool
    /// Created by the first of the two queries: one lookup serves both.
    private var queries: Queries?
    private var isCompleted = false
    private(set) var start: ContinuousClock.Instant?
    private(set) var end: ContinuousClock.Instant?
    private(set) var failure: ResolutionFailure?
    /// Addresses were found, and `admits` refused all of them.
    private(set) var isRefused = false

    private struct Queries {
        let version4: EventLoopPromise<[NIOCore.SocketAddress]>
        let version6: EventLoopPromise<[NIOCore.SocketAddress]>
    }

    /// - Parameter admits: whether a resolved address may be connected to.
    init(
        on eventLoop: any EventLoop, admits: @escaping (StreamTransport.SocketAddress) -> Bool,
        resolve: @escaping Resolve
    ) {
        self.eventLoop = eventLoop
        self.admits = admits
        self.resolve = resolve
    }

    var isUnderWay: Bool { self.start != nil && self.end == nil }

    func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[NIOCore.SocketAddress]> {
        self.startLookup(host, port).version4.futureResult
    }

    func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[NIOCore.SocketAddress]> {
        self.startLookup(host, port).version6.futureResult
    }

    /// A lookup cannot be cancelled; its result is ignored.
    func cancelQueries() {
        self.complete(.failure(.temporarilyUnavailable))
    }

    private func startLookup(_ host: String, _ port: Int) -> Queries {
        if let queries = self.queries { return queries }
        let queries = Queries(version4: self.eventLoop.makePromise(), version6: self.eventLoop.makePromise())
        self.queries = queries
        self.start = .now
        let eventLoop = self.eventLoop
        self.resolve(host, UInt16(clamping: port)) { result in
            eventLoop.execute { self.received(result) }
        }
        return queries
    }

    private func received(_ result: Result<[StreamTransport.SocketAddress], ResolutionFailure>) {
        guard !self.isCompleted else { return }
        self.end = .now
        if case .failure(let failure) = result { self.failure = failure }
        self.complete(result)
    }

    private func complete(_ result: Result<[StreamTransport.SocketAddress], ResolutionFailure>) {
        guard !self.isCompleted, let queries = self.queries else { return }
        self.isCompleted = true
        switch result {
        case .success(let found):
            let admitted = found.filter(self.admits)
            self.isRefused = admitted.isEmpty && !found.isEmpty
            let addresses = admitted.prefix(Self.addressLimit).compactMap { NIOCore.SocketAddress($0) }
            queries.version6.succeed(addresses.filter { $0.protocol == .inet6 })
            queries.version4.succeed(addresses.filter { $0.protocol == .inet })
        case .failure(let failure):
            queries.version6.fail(failure)
            queries.version4.fail(failure)
        }
    }
}

extension NIOCore.SocketAddress {
    /// - Returns: `nil` for a Unix socket.
    init?(_ address: StreamTransport.SocketAddress) {
        var bytes = ByteBuffer()
        let port: UInt16
        switch address {
        case .ipv4(let number, let given):
            bytes.writeInteger(number)
            port = given
        case .ipv6(let high, let low, _, let given):
            bytes.writeInteger(high)
            bytes.writeInteger(low)
            port = given
        case .unix: return nil
        }
        guard let made = try? NIOCore.SocketAddress(packedIPAddress: bytes, port: Int(port)) else { return nil }
        self = made
    }
}

extension StreamTransport.SocketAddress {
    init?(_ address: NIOCore.SocketAddress) {
        guard let text = address.ipAddress, let port = address.port else { return nil }
        self.init(literal: text, port: UInt16(clamping: port))
    }
}

extension TimeAmount {
    /// At most a year, so that no deadline overflows the clock.
    static func bounded(_ duration: Duration) -> TimeAmount {
        TimeAmount(min(max(duration, .zero), .seconds(365 * 86_400)))
    }
}

extension TransportFailure {
    /// Maps an error of an open channel.
    init(_ error: any Error) {
        switch error {
        case let failure as TransportFailure: self = failure
        case let error as IOError:
            let system = SystemError(error.errnoCode)
            switch system {
            case .reset, .brokenPipe: self = .reset
            case .timedOut: self = .peerUnresponsive
            default: self = .system(system)
            }
        default: self = .system(.notConnected)
        }
    }

    /// Maps an error of connecting. If all of several addresses failed, the last error is used.
    init(connecting error: any Error, isSocketFile: Bool) {
        switch error {
        case let failure as TransportFailure: self = failure
        case let error as IOError: self.init(connecting: SystemError(error.errnoCode), isSocketFile: isSocketFile)
        case let error as NIOConnectionError:
            if let last = error.connectionErrors.last {
                self.init(connecting: last.error, isSocketFile: false)
            } else if let failure = (error.dnsAError ?? error.dnsAAAAError) as? ResolutionFailure {
                self = .nameResolution(failure)
            } else {
                self = .nameResolution(.nameNotFound)
            }
        case ChannelError.connectTimeout: self = .deadlinePassed(.connecting)
        default: self = .system(.notConnected)
        }
    }
}
