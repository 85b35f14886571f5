import StreamTransport
import TestSupport
import Testing

/// What Linux does with a TCP connection at its ends. Run on real sockets too, so the simulated kernel cannot drift
/// from the real one.
@Suite("Semantics of TCP sockets, simulated and real")
struct SocketTruthTests {
    typealias Kind = TransportTestbed.Kind

    private let everything: Interest = [.readable, .writable, .hangUp]

    @Test(arguments: TransportTestbed.Kind.allCases)
    func bytesBeforeAFINAndAResetAreUnreadUntilTheyAreRead(_ kind: TransportTestbed.Kind) throws {
        let pair = try SocketPair(TransportTestbed(kind))
        #expect(!pair.system.hasUnreadInput(pair.b))
        pair.send(pair.a, "last words")
        pair.system.close(pair.a)
        pair.testbed.settle()
        pair.send(pair.b, "to nobody")
        #expect(pair.system.hasUnreadInput(pair.b))
        #expect(pair.receive(pair.b) == .text("last words"))
        #expect(!pair.system.hasUnreadInput(pair.b))
        pair.system.close(pair.b)
    }

    @Test(arguments: Kind.allCases)
    func bytesArriveInOrder(_ kind: Kind) throws {
        let pair = try SocketPair(TransportTestbed(kind))
        #expect(pair.ready(pair.b) == .writable)
        #expect(pair.receive(pair.b) == .wouldBlock)
        pair.send(pair.a, "one ")
        pair.send(pair.a, "two")
        #expect(pair.ready(pair.b) == [.readable, .writable])
        #expect(pair.receive(pair.b, atMost: 5) == .text("one t"))
        #expect(pair.receive(pair.b) == .text("wo"))
        #expect(pair.receive(pair.b) == .wouldBlock)
    }

    @Test(arguments: Kind.allCases)
    func bytesBeforeAResetAreReadThenTheErrorThenTheEnd(_ kind: Kind) throws {
        let pair = try SocketPair(TransportTestbed(kind))
        pair.send(pair.a, "abc")
        pair.system.reset(pair.a)
        #expect(pair.ready(pair.b) == self.everything)
        #expect(pair.receive(pair.b) == .text("abc"))
        #expect(pair.ready(pair.b) == self.everything)
        #expect(pair.receive(pair.b) == .failed(.reset))
        #expect(pair.receive(pair.b) == .end)
        #expect(pair.ready(pair.b) == self.everything)
        #expect(pair.send(pair.b, "x") == .failure(.brokenPipe))
    }

    @Test(arguments: Kind.allCases)
    func resetIsReportedToTheFirstCall(_ kind: Kind) throws {
        let pair = try SocketPair(TransportTestbed(kind))
        pair.system.reset(pair.a)
        pair.testbed.settle()
        #expect(pair.send(pair.b, "x") == .failure(.reset))
        #expect(pair.send(pair.b, "x") == .failure(.brokenPipe))
        #expect(pair.receive(pair.b) == .end)

        let other = try SocketPair(TransportTestbed(kind))
        other.system.reset(other.a)
        other.testbed.settle()
        #expect(other.system.connectError(other.b) == .reset)
        #expect(other.system.connectError(other.b) == nil)
        #expect(other.receive(other.b) == .end)
        #expect(other.system.peerAddress(other.b) == nil)
        #expect(other.system.shutdownOutput(other.b) == .notConnected)
    }

    @Test(arguments: Kind.allCases)
    func closeWithUnreadBytesIsAReset(_ kind: Kind) throws {
        let pair = try SocketPair(TransportTestbed(kind))
        pair.send(pair.b, "unread")
        pair.system.close(pair.a)
        #expect(pair.ready(pair.b) == self.everything)
        #expect(pair.receive(pair.b) == .failed(.reset))
        #expect(pair.receive(pair.b) == .end)
    }

    @Test(arguments: Kind.allCases)
    func writingToAClosedPeerBreaksThePipe(_ kind: Kind) throws {
        let pair = try SocketPair(TransportTestbed(kind))
        pair.system.close(pair.a)
        #expect(pair.ready(pair.b) == [.readable, .writable])
        #expect(pair.send(pair.b, "x") == .success(1))
        // The reset that answers it comes after a FIN: reading still ends cleanly, only writing breaks.
        #expect(pair.ready(pair.b) == self.everything)
        #expect(pair.receive(pair.b) == .end)
        #expect(pair.send(pair.b, "x") == .failure(.brokenPipe))
        #expect(pair.receive(pair.b) == .end)
    }

    /// The kernel names it `::ffff:127.0.0.1` (RFC 4291 §2.5.5.2).
    @Test(arguments: Kind.allCases)
    func ipv4PeerOfADualStackSocketIsNamedAsIPv4(_ kind: Kind) throws {
        let testbed = TransportTestbed(kind)
        let system = try testbed.makeSystem()
        var options = ListenOptions()
        options.dualStack = true
        let listener = try system.listen(.ipv6(high: 0, low: 0, scope: 0, port: 0), options: options).get()
        let port = try #require(system.localAddress(listener)?.port)
        let client = try system.connect(.ipv4(address: 0x7F00_0001, port: port)).get()
        var accepted: AcceptedSocket?
        #expect(
            testbed.run(until: {
                accepted = try? system.accept(listener).get()
                return accepted != nil
            }))
        let socket = try #require(accepted)
        #expect(socket.peer == system.localAddress(client))
        #expect(system.peerAddress(socket.descriptor) == system.localAddress(client))
        #expect(system.localAddress(socket.descriptor) == .ipv4(address: 0x7F00_0001, port: port))
        for descriptor in [listener, client, socket.descriptor] { system.close(descriptor) }
    }

    @Test(arguments: Kind.allCases)
    func directionsCloseIndependently(_ kind: Kind) throws {
        let pair = try SocketPair(TransportTestbed(kind))
        pair.send(pair.a, "last")
        #expect(pair.system.shutdownOutput(pair.a) == nil)
        #expect(pair.ready(pair.b) == [.readable, .writable])
        #expect(pair.receive(pair.b) == .text("last"))
        #expect(pair.receive(pair.b) == .end)
        #expect(pair.send(pair.a, "no") == .failure(.brokenPipe))
        #expect(pair.ready(pair.a) == .writable)
        pair.send(pair.b, "answer")
        #expect(pair.receive(pair.a) == .text("answer"))
        #expect(pair.system.shutdownOutput(pair.b) == nil)
        #expect(pair.ready(pair.a) == self.everything)
        #expect(pair.ready(pair.b) == self.everything)
        #expect(pair.receive(pair.a) == .end)
        #expect(pair.system.connectError(pair.a) == nil)
    }

    @Test(arguments: Kind.allCases)
    func socketAcceptsBytesAfterShuttingOnlyItsInput(_ kind: Kind) throws {
        let pair = try SocketPair(TransportTestbed(kind))
        #expect(pair.system.shutdownInput(pair.a) == nil)
        #expect(pair.ready(pair.a) == [.readable, .writable])
        #expect(pair.receive(pair.a) == .end)
        pair.send(pair.b, "x")
        #expect(pair.receive(pair.a) == .text("x"))
        #expect(pair.receive(pair.a) == .end)
        #expect(pair.ready(pair.b) == .writable)
    }

    @Test(arguments: Kind.allCases)
    func bytesAreAnsweredWithAResetOnceBothDirectionsAreShut(_ kind: Kind) throws {
        let pair = try SocketPair(TransportTestbed(kind))
        _ = pair.system.shutdownOutput(pair.a)
        _ = pair.system.shutdownInput(pair.a)
        #expect(pair.ready(pair.a) == self.everything)
        #expect(pair.receive(pair.b) == .end)
        pair.send(pair.b, "x")
        #expect(pair.receive(pair.a) == .failed(.reset))
        #expect(pair.ready(pair.b) == self.everything)
        #expect(pair.send(pair.b, "x") == .failure(.brokenPipe))
    }

    @Test(arguments: Kind.allCases)
    func fullSocketIsWritableAgainOnceRead(_ kind: Kind) throws {
        let pair = try SocketPair(TransportTestbed(kind))
        let sent = pair.fill(pair.a)
        #expect(sent > 0)
        #expect(pair.ready(pair.a) == [])
        let first = pair.drain(pair.b)
        #expect(first.last == .wouldBlock)
        #expect(first.count == sent)
        #expect(pair.ready(pair.a) == .writable)
    }

    @Test(arguments: Kind.allCases)
    func bytesNotArrivedBeforeAResetAreLost(_ kind: Kind) throws {
        let pair = try SocketPair(TransportTestbed(kind))
        let sent = pair.fill(pair.a)
        pair.system.reset(pair.a)
        let read = pair.drain(pair.b)
        #expect(read.count < sent)
        #expect(read.last == .failed(.reset))
    }

    @Test(arguments: Kind.allCases)
    func bytesAcceptedBeforeACloseAreDelivered(_ kind: Kind) throws {
        let pair = try SocketPair(TransportTestbed(kind))
        let sent = pair.fill(pair.a)
        pair.system.close(pair.a)
        let read = pair.drain(pair.b)
        #expect(read.count == sent)
        #expect(read.last == .end)
    }

    @Test(arguments: Kind.allCases)
    func severalPiecesAreSentInOneCall(_ kind: Kind) throws {
        let pair = try SocketPair(TransportTestbed(kind))
        let pieces = ["ab", "", "cde"].map { Array($0.utf8) }
        #expect(pair.system.send(pair.a, pieces: pieces, skipping: 1) == 4)
        #expect(pair.receive(pair.b) == .text("bcde"))
    }

    @Test(arguments: Kind.allCases)
    func connectionToAClosedPortIsRefused(_ kind: Kind) throws {
        let testbed = TransportTestbed(kind)
        let system = try testbed.makeSystem()
        let listener = try system.listen(SocketPair.tcp, options: ListenOptions()).get()
        let address = try #require(system.localAddress(listener))
        system.close(listener)
        let descriptor = try system.connect(address).get()
        defer { system.close(descriptor) }
        var events = ReadyEvents()
        #expect(system.watch(descriptor, for: .writable, token: 3) == nil)
        let decided = testbed.run(until: {
            system.wait(&events, until: system.now())
            return !events.events.isEmpty
        })
        #expect(decided)
        #expect(events.events == [.init(token: 3, ready: [.writable, .hangUp])])
        #expect(system.connectError(descriptor) == .refused)
        #expect(system.receive(descriptor, atMost: 1) == .end)
        #expect(system.send(descriptor, [1]) == .failure(.brokenPipe))
    }

    @Test(arguments: Kind.allCases)
    func closingAListenerResetsUnacceptedConnections(_ kind: Kind) throws {
        let testbed = TransportTestbed(kind)
        let system = try testbed.makeSystem()
        let listener = try system.listen(SocketPair.tcp, options: ListenOptions()).get()
        let descriptor = try system.connect(try #require(system.localAddress(listener))).get()
        testbed.settle()
        #expect(system.connectError(descriptor) == nil)
        system.close(listener)
        testbed.settle()
        #expect(system.receive(descriptor, atMost: 1) == .failed(.reset))
        system.close(descriptor)
    }

    @Test(arguments: Kind.allCases)
    func connectionThatWasResetMeanwhileIsAccepted(_ kind: Kind) throws {
        let testbed = TransportTestbed(kind)
        let system = try testbed.makeSystem()
        let listener = try system.listen(SocketPair.tcp, options: ListenOptions()).get()
        #expect(system.accept(listener) == .failure(.wouldBlock))
        let descriptor = try system.connect(try #require(system.localAddress(listener))).get()
        testbed.settle()
        system.reset(descriptor)
        testbed.settle()
        let socket = try system.accept(listener).get()
        #expect(system.receive(socket.descriptor, atMost: 1) == .failed(.reset))
        system.close(socket.descriptor)
        system.close(listener)
    }

    @Test(arguments: Kind.allCases)
    func secondListenerIsRefusedUnlessBothShare(_ kind: Kind) throws {
        let system = try TransportTestbed(kind).makeSystem()
        let first = try system.listen(SocketPair.tcp, options: ListenOptions()).get()
        let taken = try #require(system.localAddress(first))
        #expect(system.listen(taken, options: ListenOptions()) == .failure(.addressInUse))
        system.close(first)
        var sharing = ListenOptions()
        sharing.portSharing = .begin
        let second = try system.listen(taken, options: sharing).get()
        // Like another process of the same program: it takes no connections from the running one.
        #expect(system.listen(taken, options: sharing) == .failure(.addressInUse))
        sharing.portSharing = .join
        let third = try system.listen(taken, options: sharing).get()
        #expect(system.localAddress(second) == system.localAddress(third))
        sharing.portSharing = .begin
        #expect(system.listen(taken, options: sharing) == .failure(.addressInUse))
        #expect(system.listen(taken, options: ListenOptions()) == .failure(.addressInUse))
        system.close(second)
        system.close(third)
    }

    @Test(arguments: Kind.allCases)
    func lowestFreeDescriptorIsGivenWithoutItsOldWatch(_ kind: Kind) throws {
        let pair = try SocketPair(TransportTestbed(kind))
        var events = ReadyEvents()
        #expect(pair.system.watch(pair.b, for: .readable, token: 1) == nil)
        pair.send(pair.a, "x")
        pair.system.close(pair.b)
        // The number of the pair's own listener is free too, and lower.
        let first = try pair.system.listen(SocketPair.tcp, options: ListenOptions()).get()
        let second = try pair.system.listen(SocketPair.tcp, options: ListenOptions()).get()
        // Other tests open real descriptors meanwhile.
        #expect(kind == .sockets || (first.number < pair.a.number && second == pair.b))
        pair.testbed.settle()
        pair.system.wait(&events, until: pair.system.now())
        #expect(events.events.isEmpty)
        #expect(pair.system.watch(second, for: .readable, token: 2) == nil)
        pair.system.close(first)
        pair.system.close(second)
        pair.system.close(pair.a)
    }

    @Test(arguments: Kind.allCases)
    func hangUpIsReportedUnrequested(_ kind: Kind) throws {
        let pair = try SocketPair(TransportTestbed(kind))
        var events = ReadyEvents()
        #expect(pair.system.watch(pair.b, for: [], token: 9) == nil)
        pair.send(pair.a, "x")
        pair.system.wait(&events, until: pair.system.now())
        #expect(events.events.isEmpty)
        pair.system.reset(pair.a)
        pair.testbed.settle()
        for _ in 0..<2 {
            pair.system.wait(&events, until: pair.system.now())
            #expect(events.events == [.init(token: 9, ready: .hangUp)])
        }
    }
}
