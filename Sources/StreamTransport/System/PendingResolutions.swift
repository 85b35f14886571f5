import CLinux
import Synchronization

/// One loop's lookups: handed to the resolver threads, answered on the loop.
final class PendingResolutions {
    /// What the threads may touch. It holds the loop's eventfd as a duplicate, so that an answer which comes after the
    /// loop is gone wakes nobody instead of a stranger who got the descriptor's number.
    private final class Answers: Sendable {
        let arrived = Mutex<[(ResolutionTicket, Result<[SocketAddress], ResolutionFailure>)]>([])
        private let waker: Int32

        init(waker: Int32) {
            self.waker = sluice_duplicate(waker)
        }

        deinit {
            if self.waker >= 0 { _ = CLinux.close(self.waker) }
        }

        func add(_ ticket: ResolutionTicket, _ result: Result<[SocketAddress], ResolutionFailure>) {
            self.arrived.withLock { $0.append((ticket, result)) }
            _ = eventfd_write(self.waker, 1)
        }
    }

    private let resolver: ResolverThreads
    private let answers: Answers
    private var completions: [ResolutionTicket: (Result<[SocketAddress], ResolutionFailure>) -> Void] = [:]
    private var lastNumber: UInt64 = 0

    init(resolver: ResolverThreads, waker: Int32) {
        self.resolver = resolver
        self.answers = Answers(waker: waker)
    }

    func resolve(
        _ host: String, port: UInt16, completion: @escaping (Result<[SocketAddress], ResolutionFailure>) -> Void
    ) -> ResolutionTicket {
        self.lastNumber += 1
        let ticket = ResolutionTicket(number: self.lastNumber)
        self.completions[ticket] = completion
        let answers = self.answers
        let taken = self.resolver.submit(.init(host: host, port: port) { answers.add(ticket, $0) })
        if !taken { answers.add(ticket, .failure(.tooManyLookups)) }
        return ticket
    }

    func cancel(_ ticket: ResolutionTicket) {
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
