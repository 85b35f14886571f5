import NIOCore
import NIOPosix
import StreamTransport

/// Gives NIO's happy eyeballs the addresses of a name, looked up where ours are, and remembers how it went.
///
/// Confined to its event loop; serves one attempt.
final class NameLookup: Resolver, @unchecked Sendable {
    typealias Answer = @Sendable (Result<[StreamTransport.SocketAddress], ResolutionFailure>) -> Void
    typealias Resolve = @Sendable (String, UInt16, @escaping Answer) -> Void

    /// Addresses tried at most; the rest of a longer list is passed over.
    static let addressLimit = 16

    private let eventLoop: any EventLoop
    private let resolve: Resolve
    private let admits: (StreamTransport.SocketAddress) -> Bool
    private struct Queries {
        let version4: EventLoopPromise<[NIOCore.SocketAddress]>
        let version6: EventLoopPromise<[NIOCore.SocketAddress]>
    }

    /// Made when the first of the two is asked.
    private var queries: Queries?
    private var isAnswered = false
    private(set) var start: ContinuousClock.Instant?
    private(set) var end: ContinuousClock.Instant?
    private(set) var failure: ResolutionFailure?
    /// There are addresses, none of which may be used.
    private(set) var isRefused = false

    /// - Parameter admits: whether an address that was found may be used.
    init(
        on eventLoop: any EventLoop, admits: @escaping (StreamTransport.SocketAddress) -> Bool,
        resolve: @escaping Resolve
    ) {
        self.eventLoop = eventLoop
        self.admits = admits
        self.resolve = resolve
    }

    /// The lookup began and has not ended.
    var isUnderWay: Bool { self.start != nil && self.end == nil }

    func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[NIOCore.SocketAddress]> {
        self.begin(host, port).version4.futureResult
    }

    func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[NIOCore.SocketAddress]> {
        self.begin(host, port).version6.futureResult
    }

    /// A lookup cannot be called back; its answer finds nobody.
    func cancelQueries() {
        self.answer(.failure(.temporarilyUnavailable))
    }

    private func begin(_ host: String, _ port: Int) -> Queries {
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
        guard !self.isAnswered else { return }
        self.end = .now
        if case .failure(let failure) = result { self.failure = failure }
        self.answer(result)
    }

    private func answer(_ result: Result<[StreamTransport.SocketAddress], ResolutionFailure>) {
        guard !self.isAnswered, let queries = self.queries else { return }
        self.isAnswered = true
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
    /// At most a year, so that no deadline is beyond what a clock can say.
    static func bounded(_ duration: Duration) -> TimeAmount {
        TimeAmount(min(max(duration, .zero), .seconds(365 * 86_400)))
    }
}

extension TransportFailure {
    /// What an error of an open channel means.
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

    /// What ended an attempt to connect. Of several addresses that all failed, the last is told.
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
