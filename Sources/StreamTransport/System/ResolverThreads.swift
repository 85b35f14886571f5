import CLinux
import DequeModule
import Synchronization

/// Looks names up on a few threads of its own, because `getaddrinfo` blocks and a loop must not.
///
/// A name is looked up once at a time: callers that ask for it meanwhile get the same answer. So a crowd of clients of one
/// upstream is one lookup, and a name whose servers are silent occupies one thread.
///
/// Bounded: at most 8 threads, started when first needed, at most 256 lookups waiting, and 65 536 callers; one more is
/// refused.
package final class ResolverThreads: Sendable {
    package static let shared = ResolverThreads()
    private static let threadLimit = 8
    private static let waitingLimit = 256
    private static let callerLimit = 65_536

    struct Lookup: Sendable {
        let host: String
        let port: UInt16
        var authenticity = Authenticity.any
        let answer: @Sendable (Result<[SocketAddress], ResolutionFailure>) -> Void
    }

    /// Required authenticity of an answer.
    enum Authenticity: Sendable {
        case any
        /// - Parameter server: as of `AuthenticatedNames`.
        case required(server: SocketAddress?)
    }

    private enum Work: Sendable {
        /// For all callers that ask for the name.
        case name(String)
        case authenticated(Lookup, server: SocketAddress?)
    }

    private struct Queue {
        var waiting: Deque<Work> = []
        /// Those who ask for a name that is waiting or being looked up, by the name's bytes.
        var callers: [[UInt8]: [Lookup]] = [:]
        var callerCount = 0
        var threads = 0

        /// - Returns: whether the lookup was taken.
        mutating func add(_ lookup: Lookup) -> Bool {
            if case .required(let server) = lookup.authenticity {
                guard self.waiting.count < ResolverThreads.waitingLimit else { return false }
                self.waiting.append(.authenticated(lookup, server: server))
                return true
            }
            let name = Array(lookup.host.utf8)
            let isAsked = self.callers[name] != nil
            guard self.callerCount < ResolverThreads.callerLimit,
                isAsked || self.waiting.count < ResolverThreads.waitingLimit
            else { return false }
            self.callers[name, default: []].append(lookup)
            self.callerCount += 1
            if !isAsked { self.waiting.append(.name(lookup.host)) }
            return true
        }

        mutating func takeCallers(of host: String) -> [Lookup] {
            let callers = self.callers.removeValue(forKey: Array(host.utf8)) ?? []
            self.callerCount -= callers.count
            return callers
        }
    }

    private let queue = Mutex(Queue())
    private let addresses: @Sendable (_ host: String) -> Result<[SocketAddress], ResolutionFailure>

    /// - Parameter addresses: looks a name up, and may block; replaced in tests.
    package init(
        addresses: @escaping @Sendable (_ host: String) -> Result<[SocketAddress], ResolutionFailure> = {
            ResolverThreads.systemAddresses(of: $0)
        }
    ) {
        self.addresses = addresses
    }

    /// - Returns: whether the lookup was taken; a refused one is never answered.
    func submit(_ lookup: Lookup) -> Bool {
        let (isTaken, startsThread) = self.queue.withLock { queue -> (Bool, Bool) in
            guard queue.add(lookup) else { return (false, false) }
            guard !queue.waiting.isEmpty, queue.threads < Self.threadLimit else { return (true, false) }
            queue.threads += 1
            return (true, true)
        }
        // Without a thread the lookup waits for one of the others, or for the next caller.
        if startsThread, !SystemThread.start(named: "resolver", { self.work() }) {
            self.queue.withLock { $0.threads -= 1 }
        }
        return isTaken
    }

    /// - Parameter answer: called once, on a thread of the lookups; empty if the name has no address.
    /// - Returns: whether the lookup was taken; a refused one is never answered.
    package func look(
        up host: String, port: UInt16 = 0, _ answer: @escaping @Sendable ([SocketAddress]) -> Void
    ) -> Bool {
        self.submit(Lookup(host: host, port: port) { answer((try? $0.get()) ?? []) })
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
        while let work = self.next() {
            switch work {
            case .name(let host):
                let found = self.addresses(host)
                for caller in self.queue.withLock({ $0.takeCallers(of: host) }) {
                    caller.answer(found.map { $0.map { $0.with(port: caller.port) } })
                }
            case .authenticated(let lookup, let server):
                lookup.answer(AuthenticatedNames.addresses(of: lookup.host, port: lookup.port, server: server))
            }
        }
    }

    private func next() -> Work? {
        self.queue.withLock { queue in
            if let work = queue.waiting.popFirst() { return work }
            queue.threads -= 1
            return nil
        }
    }

    private static func systemAddresses(of host: String) -> Result<[SocketAddress], ResolutionFailure> {
        // The system's resolver may know no other name of this kind than this one, for which it may have other addresses.
        if host.lowercased() != "localhost", AuthenticatedNames.isLocal(host) {
            return .success(AuthenticatedNames.loopback(0))
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
            if let address = SocketAddress(storage, length: length)?.with(port: 0), !found.contains(address) {
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
