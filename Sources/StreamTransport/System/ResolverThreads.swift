import CLinux
import DequeModule
import Synchronization

/// Looks names up on a few threads of its own, because `getaddrinfo` blocks and a loop must not.
///
/// Bounded: at most 4 threads, started when first needed, and at most 256 lookups waiting; one more is refused.
package final class ResolverThreads: Sendable {
    package static let shared = ResolverThreads()
    package static let threadLimit = 4
    package static let waitingLimit = 256

    struct Lookup: Sendable {
        let host: String
        let port: UInt16
        let answer: @Sendable (Result<[SocketAddress], ResolutionFailure>) -> Void
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

    /// A thread ends when nothing waits: idle processes keep none.
    private func work() {
        while let lookup = self.next() {
            lookup.answer(Self.addresses(of: lookup.host, port: lookup.port))
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
            if let address = SocketAddress(storage, length: length)?.withPort(port), !found.contains(address) {
                found.append(address)
            }
            unsafe entry = current.pointee.ai_next
        }
        return found.isEmpty ? .failure(.nameNotFound) : .success(found)
    }

    private static func failure(of status: Int32) -> ResolutionFailure {
        switch status {
        case EAI_NONAME, Int32(SLUICE_EAI_NODATA): .nameNotFound
        case EAI_AGAIN: .temporarilyUnavailable
        default: .failed(unsafe String(cString: gai_strerror(status)))
        }
    }
}

extension SocketAddress {
    /// The same address with another port; a Unix socket stays as it is.
    package func withPort(_ port: UInt16) -> SocketAddress {
        switch self {
        case .ipv4(let address, _): .ipv4(address: address, port: port)
        case .ipv6(let high, let low, let scope, _): .ipv6(high: high, low: low, scope: scope, port: port)
        case .unix: self
        }
    }
}
