import Dispatch
import StreamTransport
import Synchronization
import Testing

@Suite("Lookups of names on threads", .timeLimit(.minutes(2)))
struct ResolverThreadTests {
    /// Answers names, none before it is opened, and counts how often each is looked up.
    private final class Names: Sendable {
        private let counts = Mutex<[String: Int]>([:])
        private let gate = DispatchSemaphore(value: 0)

        func addresses(of host: String) -> Result<[SocketAddress], ResolutionFailure> {
            self.counts.withLock { $0[host, default: 0] += 1 }
            self.gate.wait()
            // The next one may pass, too.
            self.gate.signal()
            return .success([.ipv4(address: UInt32(host.utf8.count), port: 0)])
        }

        func open() { self.gate.signal() }

        var lookups: [String: Int] { self.counts.withLock(\.self) }
    }

    private final class Answers: Sendable {
        private let all = Mutex<[[SocketAddress]]>([])

        func add(_ addresses: [SocketAddress]) { self.all.withLock { $0.append(addresses) } }

        func wait(for count: Int) async -> [[SocketAddress]] {
            while self.all.withLock({ $0.count }) < count { await Task.yield() }
            return self.all.withLock { $0 }
        }
    }

    @Test func callersForOneNameShareALookup() async {
        let (names, answers) = (Names(), Answers())
        let threads = ResolverThreads { names.addresses(of: $0) }
        for port in UInt16(1)...1000 { #expect(threads.look(up: "one.test", port: port) { answers.add($0) }) }
        #expect(threads.look(up: "other.test", port: 1001) { answers.add($0) })
        names.open()
        let found = await answers.wait(for: 1001)
        #expect(names.lookups == ["one.test": 1, "other.test": 1])
        let one = Set((UInt16(1)...1000).map { [SocketAddress.ipv4(address: 8, port: $0)] })
        #expect(Set(found) == one.union([[.ipv4(address: 10, port: 1001)]]))
    }

    @Test func nameThatHasBeenAnsweredIsLookedUpAgain() async {
        let (names, answers) = (Names(), Answers())
        names.open()
        let threads = ResolverThreads { names.addresses(of: $0) }
        for count in 1...3 {
            #expect(threads.look(up: "one.test") { answers.add($0) })
            _ = await answers.wait(for: count)
        }
        #expect(names.lookups == ["one.test": 3])
    }

    @Test func silentNameLeavesThreadsToOthers() async {
        let (silent, answers) = (Names(), Answers())
        let threads = ResolverThreads { host in
            host == "silent.test" ? silent.addresses(of: host) : .success([.ipv4(address: 1, port: 0)])
        }
        for _ in 0..<100 { #expect(threads.look(up: "silent.test") { _ in }) }
        for count in 1...50 {
            #expect(threads.look(up: "ok.test") { answers.add($0) })
            _ = await answers.wait(for: count)
        }
        silent.open()
    }

    @Test func tooManyNamesAtOnceAreRefused() async {
        let (names, answers) = (Names(), Answers())
        let threads = ResolverThreads { names.addresses(of: $0) }
        let taken = (0..<300).count { number in threads.look(up: "\(number).test") { answers.add($0) } }
        // Those that threads have taken do not wait.
        #expect((256...264).contains(taken))
        names.open()
        _ = await answers.wait(for: taken)
        #expect(names.lookups.count == taken)
    }
}
