import NIOCore
import NIOPosix
import StreamTransport

/// Gives NIO's happy eyeballs the addresses of a name, looked up where ours are, and remembers how it went.
///
/// Confined to its event loop; serves one attempt.
final class NameLookup: Resolver, @unchecked Sendable {
    typealias Answer = @Sendable (Result<[StreamTransport.SocketAddress], ResolutionFailure>) -> Void
    typealias Resolve = @Sendable (String, UInt16, @escaping Answer) -> Void
    typealias Permission = @Sendable (String, StreamTransport.SocketAddress) -> Bool

    /// Addresses tried at most; the rest of a longer list is passed over.
    static let addressLimit = 16

    private let eventLoop: any EventLoop
    private let resolve: Resolve
    private let permits: Permission?
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
    /// An address that must not be tried; told where none is left.
    private(set) var refused: StreamTransport.SocketAddress?

    init(on eventLoop: any EventLoop, permits: Permission?, resolve: @escaping Resolve) {
        self.eventLoop = eventLoop
        self.permits = permits
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
            eventLoop.execute { self.received(result.map { self.permitted($0, of: host) }) }
        }
        return queries
    }

    private func permitted(_ addresses: [StreamTransport.SocketAddress], of host: String)
        -> [StreamTransport.SocketAddress]
    {
        guard let permits = self.permits else { return addresses }
        let permitted = addresses.filter { permits(host, $0) }
        if permitted.isEmpty { self.refused = addresses.first }
        return permitted
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
            let addresses = found.prefix(Self.addressLimit).compactMap { NIOCore.SocketAddress($0) }
            queries.version6.succeed(addresses.filter { $0.protocol == .inet6 })
            queries.version4.succeed(addresses.filter { $0.protocol == .inet })
        case .failure(let failure):
            queries.version6.fail(failure)
            queries.version4.fail(failure)
        }
    }
}
