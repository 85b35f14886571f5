import Foundation
import SimulatedNetwork
import StreamTransport
import Synchronization
import TestSupport
import Testing

@Suite("Semantics of Unix sockets, simulated and real")
struct UnixSocketTruthTests {
    typealias Kind = TransportTestbed.Kind

    private static func abstractAddress() -> SocketAddress {
        .unix(path: "@sluice-test-\(UUID().uuidString)")
    }

    private static func filePath() -> String {
        FileManager.default.temporaryDirectory.appendingPathComponent("s\(UUID().uuidString).sock").path
    }

    private func pair(_ kind: Kind) throws -> SocketPair {
        try SocketPair(TransportTestbed(kind), at: Self.abstractAddress())
    }

    @Test(arguments: Kind.allCases)
    func peersCloseEndsBothDirectionsAtOnce(_ kind: Kind) throws {
        let pair = try self.pair(kind)
        pair.send(pair.a, "abc")
        pair.system.close(pair.a)
        #expect(pair.ready(pair.b) == [.readable, .writable, .hangUp])
        #expect(pair.receive(pair.b) == .text("abc"))
        #expect(pair.receive(pair.b) == .end)
        #expect(pair.send(pair.b, "x") == .failure(.brokenPipe))
    }

    @Test(arguments: Kind.allCases)
    func closeWithUnreadBytesIsAReset(_ kind: Kind) throws {
        let pair = try self.pair(kind)
        pair.send(pair.b, "unread")
        pair.system.close(pair.a)
        #expect(pair.send(pair.b, "x") == .failure(.brokenPipe))
        #expect(pair.receive(pair.b) == .failed(.reset))
        #expect(pair.receive(pair.b) == .end)
    }

    @Test(arguments: Kind.allCases)
    func directionsCloseIndependently(_ kind: Kind) throws {
        let pair = try self.pair(kind)
        #expect(pair.system.shutdownOutput(pair.a) == nil)
        #expect(pair.ready(pair.b) == [.readable, .writable])
        #expect(pair.ready(pair.a) == .writable)
        #expect(pair.receive(pair.b) == .end)
        pair.send(pair.b, "answer")
        #expect(pair.receive(pair.a) == .text("answer"))
        #expect(pair.system.shutdownOutput(pair.b) == nil)
        #expect(pair.ready(pair.a) == [.readable, .writable, .hangUp])
    }

    @Test(arguments: Kind.allCases)
    func writingToAPeerThatShutItsInputBreaksThePipe(_ kind: Kind) throws {
        let pair = try self.pair(kind)
        #expect(pair.system.shutdownInput(pair.a) == nil)
        #expect(pair.send(pair.b, "x") == .failure(.brokenPipe))
        #expect(pair.receive(pair.a) == .end)
    }

    @Test(arguments: Kind.allCases)
    func socketTakesNoMoreThanItsBufferHolds(_ kind: Kind) throws {
        let pair = try self.pair(kind)
        let sent = pair.fill(pair.a)
        #expect(pair.ready(pair.a) == [])
        let read = pair.drain(pair.b)
        #expect(read.count == sent)
        #expect(pair.ready(pair.a) == .writable)
    }

    @Test(arguments: Kind.allCases)
    func staleSocketFileIsTakenOver(_ kind: Kind) throws {
        let path = Self.filePath()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let system = try TransportTestbed(kind).makeSystem()
        #expect(system.connect(.unix(path: path)) == .failure(.noSuchFile))
        #expect(system.connect(Self.abstractAddress()) == .failure(.refused))
        let listener = try system.listen(.unix(path: path), options: ListenOptions()).get()
        #expect(system.localAddress(listener) == .unix(path: path))
        #expect(system.listen(.unix(path: path), options: ListenOptions()) == .failure(.addressInUse))
        system.close(listener)
        #expect(system.connect(.unix(path: path)) == .failure(.refused))
        let again = try system.listen(.unix(path: path), options: ListenOptions()).get()
        system.close(again)
        #expect(
            system.listen(.unix(path: String(repeating: "x", count: 200)), options: ListenOptions())
                == .failure(.nameTooLong))
    }

    /// Each finds the stale file; that of the first one that listens is stale no more.
    @Test func oneOfManyTakesAStaleSocketFileOver() throws {
        let path = Self.filePath()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let system = try TransportTestbed(.sockets).makeSystem()
        for _ in 0..<1500 {
            system.close(try system.listen(.unix(path: path), options: ListenOptions()).get())
            let found = Mutex<[Result<Descriptor, SystemError>]>([])
            DispatchQueue.concurrentPerform(iterations: 4) { _ in
                guard let system = try? LinuxSystem() else { return }
                let result = system.listen(.unix(path: path), options: ListenOptions())
                found.withLock { $0.append(result) }
            }
            let results = found.withLock { $0 }
            let listeners = results.compactMap { try? $0.get() }
            #expect(results.count == 4 && listeners.count == 1)
            #expect(results.count { $0 == .failure(.addressInUse) } == 3)
            #expect(SocketFile.isServed(path))
            for listener in listeners { system.close(listener) }
            guard listeners.count == 1 else { return }
        }
    }

    /// Any user who may read the folder can lock it.
    @Test func folderThatAnotherLocksDelaysAListener() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("f\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let descriptor = open(folder.path, O_RDONLY | O_DIRECTORY)
        #expect(flock(descriptor, LOCK_EX) == 0)
        defer { close(descriptor) }
        let system = try TransportTestbed(.sockets).makeSystem()
        let path = folder.appendingPathComponent("s").path
        system.close(try system.listen(.unix(path: path), options: ListenOptions()).get())
    }

    @Test func fileThatIsNoSocketIsKept() throws {
        let path = Self.filePath()
        let link = Self.filePath()
        let files = FileManager.default
        defer { for file in [path, link] { try? files.removeItem(atPath: file) } }
        try Data("kept".utf8).write(to: URL(fileURLWithPath: path))
        try files.createSymbolicLink(atPath: link, withDestinationPath: path)
        let system = try TransportTestbed(.sockets).makeSystem()
        for file in [path, link, files.temporaryDirectory.path] {
            #expect(system.listen(.unix(path: file), options: ListenOptions()) == .failure(.notSocket))
            #expect(system.socketFile(at: file) == nil)
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: link)) == Data("kept".utf8))
    }

    @Test(arguments: Kind.allCases)
    func listenerRemovesItsSocketFile(_ kind: Kind) throws {
        let path = Self.filePath()
        let system = try TransportTestbed(kind).makeSystem()
        let listener = try system.listen(.unix(path: path), options: ListenOptions()).get()
        let file = try #require(system.socketFile(at: path))
        system.remove(file)
        #expect(system.connect(.unix(path: path)) == .failure(.noSuchFile))
        #expect(system.socketFile(at: path) == nil)
        // Another may take the path; the old listener's end is none of its business.
        let heir = try system.listen(.unix(path: path), options: ListenOptions()).get()
        let heirsFile = try #require(system.socketFile(at: path))
        system.remove(file)
        system.close(listener)
        let connected = try system.connect(.unix(path: path)).get()
        system.remove(heirsFile)
        for descriptor in [connected, heir] { system.close(descriptor) }
        system.remove(heirsFile)
        #expect(system.connect(.unix(path: path)) == .failure(.noSuchFile))
    }

    @Test(arguments: Kind.allCases)
    func socketFileHasItsMode(_ kind: Kind) throws {
        let path = Self.filePath()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let testbed = TransportTestbed(kind)
        let system = try testbed.makeSystem()
        var options = ListenOptions()
        options.mode = 0o600
        let listener = try system.listen(.unix(path: path), options: options).get()
        defer { system.close(listener) }
        if let network = testbed.network {
            #expect(network.mode(ofSocketAt: path) == 0o600)
        } else {
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
        }
    }
}
