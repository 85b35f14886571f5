import CLinux
import DequeModule
import Synchronization

/// Looks names up on a few threads of its own, because `getaddrinfo` blocks and a loop must not.
///
/// Bounded: at most 4 threads, started when first needed, and at most 256 lookups waiting; one more is refused.
package final class ResolverThreads: Sendable {
    package static let shared = ResolverThreads()
    private static let threadLimit = 4
    package static let waitingLimit = 256

    struct Lookup: Sendable {
        let host: String
        let port: UInt16
        var authenticity = Authenticity.any
        let answer: @Sendable (Result<[SocketAddress], ResolutionFailure>) -> Void
    }

    /// What an answer has to be.
    enum Authenticity: Sendable {
        case any
        /// - Parameter server: as of `AuthenticatedNames`.
        case required(server: SocketAddress?)
    }

    private struct Queue {
        var waiting: Deque<Lookup> = []
        var threads = 0
    }

    private let queue = Mutex(Queue())

    package init() {}

    /// - Returns: whether the lookup was taken; a refused one is never answered.
    func submit(_ lookup: Lookup) -> Bool {
        let (taken, startThread) = self.queue.withLock { queue -> (Bool, Bool) in
            guard queue.waiting.count < Self.waitingLimit else { return (false, false) }
            queue.waiting.append(lookup)
            guard queue.threads < Self.threadLimit else { return (true, false) }
            queue.threads += 1
            return (true, true)
        }
        if startThread { SystemThread.start(named: "resolver") { self.work() } }
        return taken
    }

    /// - Parameter answer: called once, on a thread of the lookups; empty if the name has no address.
    /// - Returns: whether the lookup was taken; a refused one is never answered.
    package func look(up host: String, _ answer: @escaping @Sendable ([SocketAddress]) -> Void) -> Bool {
        self.submit(Lookup(host: host, port: 0) { answer((try? $0.get()) ?? []) })
    }

    /// Looks a name up in DNS with answers that are authenticated (RFC 4035): neither files nor other services name the
    /// addresses.
    /// - Parameters:
    ///   - server: an IPv4 address, asked instead of the system's servers and trusted; `nil` outside of tests.
    ///   - answer: called once, from any thread.
    package func lookUpAuthenticated(
        _ host: String, port: UInt16, server: SocketAddress? = nil,
        _ answer: @escaping @Sendable (Result<[SocketAddress], ResolutionFailure>) -> Void
    ) {
        let lookup = Lookup(host: host, port: port, authenticity: .required(server: server), answer: answer)
        if !self.submit(lookup) { answer(.failure(.tooManyLookups)) }
    }

    /// A thread ends when nothing waits: idle processes keep none.
    private func work() {
        while let lookup = self.next() {
            switch lookup.authenticity {
            case .any: lookup.answer(Self.addresses(of: lookup.host, port: lookup.port))
            case .required(let server):
                lookup.answer(AuthenticatedNames.addresses(of: lookup.host, port: lookup.port, server: server))
            }
        }
    }

    private func next() -> Lookup? {
        self.queue.withLock { queue in
            if let lookup = queue.waiting.popFirst() { return lookup }
            queue.threads -= 1
            return nil
        }
    }

    private static func addresses(of host: String, port: UInt16) -> Result<[SocketAddress], ResolutionFailure> {
        // The system's resolver may know no other name of this kind than this one, for which it may have other addresses.
        if host.lowercased() != "localhost", AuthenticatedNames.isLocal(host) {
            return .success(AuthenticatedNames.loopback(port))
        }
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let status = unsafe getaddrinfo(host, nil, &hints, &list)
        guard status == 0 else { return .failure(Self.failure(of: status)) }
        defer { unsafe freeaddrinfo(list) }
        var found: [SocketAddress] = []
        var entry = unsafe list
        while let current = unsafe entry {
            var storage = sockaddr_storage()
            let length = unsafe current.pointee.ai_addrlen
            unsafe memcpy(&storage, current.pointee.ai_addr, Int(length))
            if let address = SocketAddress(storage, length: length)?.with(port: port), !found.contains(address) {
                found.append(address)
            }
            unsafe entry = current.pointee.ai_next
        }
        return found.isEmpty ? .failure(.nameNotFound) : .success(found)
    }

    private static func failure(of status: Int32) -> ResolutionFailure {
        switch status {
        case EAI_NONAME, Int32(SLUICE_EAI_NODATA): .nameNotFound
        case EAI_AGAIN: NameServers.haveRoute ? .temporarilyUnavailable : .noRoute
        default: .failed(unsafe String(cString: gai_strerror(status)))
        }
    }
}

extension SocketAddress {
    /// The same address with another port; a Unix socket stays as it is.
    package func with(port: UInt16) -> SocketAddress {
        switch self {
        case .ipv4(let address, _): .ipv4(address: address, port: port)
        case .ipv6(let high, let low, let scope, _): .ipv6(high: high, low: low, scope: scope, port: port)
        case .unix: self
        }
    }
}

/// One loop's lookups: handed to the resolver threads, answered on the loop.
final class PendingResolutions {
    /// State shared with the threads. It holds a duplicate of the loop's eventfd, so that an answer that comes after
    /// the loop's end wakes nothing instead of an unrelated descriptor with the same number.
    private final class Answers: Sendable {
        let arrived = Mutex<[(ResolutionToken, Result<[SocketAddress], ResolutionFailure>)]>([])
        private let waker: Int32

        init(waker: Int32) {
            self.waker = sluice_duplicate(waker)
        }

        deinit {
            if self.waker >= 0 { _ = CLinux.close(self.waker) }
        }

        func add(_ ticket: ResolutionToken, _ result: Result<[SocketAddress], ResolutionFailure>) {
            self.arrived.withLock { $0.append((ticket, result)) }
            _ = eventfd_write(self.waker, 1)
        }
    }

    private let resolver: ResolverThreads
    private let answers: Answers
    private var completions: [ResolutionToken: (Result<[SocketAddress], ResolutionFailure>) -> Void] = [:]
    private var lastNumber: UInt64 = 0

    init(resolver: ResolverThreads, waker: Int32) {
        self.resolver = resolver
        self.answers = Answers(waker: waker)
    }

    func resolve(
        _ host: String, port: UInt16, completion: @escaping (Result<[SocketAddress], ResolutionFailure>) -> Void
    ) -> ResolutionToken {
        self.lastNumber += 1
        let ticket = ResolutionToken(number: self.lastNumber)
        self.completions[ticket] = completion
        let answers = self.answers
        let taken = self.resolver.submit(.init(host: host, port: port) { answers.add(ticket, $0) })
        if !taken { answers.add(ticket, .failure(.tooManyLookups)) }
        return ticket
    }

    func cancel(_ ticket: ResolutionToken) {
        self.completions[ticket] = nil
    }

    func deliver() {
        let arrived = self.answers.arrived.withLock { list in
            defer { list.removeAll() }
            return list
        }
        for (ticket, result) in arrived {
            self.completions.removeValue(forKey: ticket)?(result)
        }
    }

    func abandon() {
        self.completions.removeAll()
    }
}
