import BackgroundTransfers
import Foundation
import StreamTransport
import Synchronization
import Testing
import TransferDaemon
import URLLoading

@Suite("The daemon of background sessions", .loading, .choosesItsConnections, .onlyWithHTTP11, .timeLimit(.minutes(20)))
struct BackgroundDaemonTests {
    /// Permits the ports that are named.
    private static func daemon() async throws -> BackgroundDaemon {
        try await BackgroundDaemon { settings in
            settings.permission = { ports in { address, _ in ports.contains("\(address.port)") } }
        }
    }

    @Test func redirectToAnAddressThatIsNotPermittedFails() async throws {
        let (other, server) = (try await WebServer(["/": .text("hello")]), try await WebServer())
        server.on("/", .redirect(to: other.root + "/"))
        let recorder = BackgroundRecorder()
        let session = try await Self.daemon().session(recorder) { $0.permittedTargets = ["\(server.port)"] }
        session.downloadTask(with: server.url()).resume()
        #expect(await recorder.log.has("completed 1"))
        let error = try #require(recorder.notes.errors[1])
        #expect(error.code == .cannotConnectToHost && error.isAddressRefused)
        #expect(other.connections == 0 && server.requests.count == 1)
        session.invalidateAndCancel()
    }

    @Test func permittedAddressesChangeWhileTheSessionExists() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let recorder = BackgroundRecorder()
        let session = try await Self.daemon().session(recorder) { $0.permittedTargets = [] }
        for (number, targets) in [[], ["\(server.port)"], ["1"]].enumerated() {
            #expect(session.permit(targets) == nil)
            session.downloadTask(with: server.url()).resume()
            #expect(await recorder.log.has("completed \(number + 1)"))
        }
        #expect(recorder.notes.errors.keys.sorted() == [1, 3] && recorder.notes.files[2] == Data("hello".utf8))
        session.invalidateAndCancel()
    }

    @Test func daemonThatDoesNotKnowTheWordsPermitsNothing() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let recorder = BackgroundRecorder()
        let session = try await BackgroundDaemon().session(recorder) { $0.permittedTargets = ["public", "loopback"] }
        session.downloadTask(with: server.url()).resume()
        #expect(await recorder.log.has("completed 1"))
        #expect(recorder.notes.errors[1]?.isAddressRefused == true && server.connections == 0)
        session.invalidateAndCancel()
    }

    @Test(arguments: [true, false])
    func namesAreAuthenticatedByTheDaemon(_ isSetting: Bool) async throws {
        let server = try await WebServer(["/": .text("hello")])
        let names = Mutex<[String]>([])
        let port = UInt16(clamping: server.port)
        let daemon = try await BackgroundDaemon { settings in
            settings.prepare = { configuration in
                configuration.resolve = { _, _, answer in answer(.failure(.nameNotFound)) }
                configuration.resolveAuthenticated = { host, _, answer in
                    names.withLock { $0.append(host) }
                    answer(.success([.ipv4(address: 0x7F00_0001, port: port)]))
                }
            }
        }
        let recorder = BackgroundRecorder()
        let session = daemon.session(recorder) { $0.requiresDNSSECValidation = isSetting }
        var request = URLRequest(url: try #require(URL(string: "http://signed.test:\(server.port)/")))
        request.requiresDNSSECValidation = !isSetting
        session.downloadTask(with: request).resume()
        #expect(await recorder.log.has("completed 1"))
        #expect(recorder.notes.files[1] == Data("hello".utf8) && names.withLock { $0 } == ["signed.test"])
        session.invalidateAndCancel()
    }

    @Test func settingsOfNetworksReachTheDaemonsSession() async throws {
        let seen = Mutex<[Bool]>([])
        let daemon = try await BackgroundDaemon { settings in
            settings.prepare = { configuration in
                seen.withLock {
                    $0 = [
                        configuration.allowsCellularAccess, configuration.allowsExpensiveNetworkAccess,
                        configuration.allowsConstrainedNetworkAccess, configuration.waitsForConnectivity,
                        configuration.resumesUploads, configuration.multipathServiceType == .handover,
                    ]
                }
            }
        }
        let server = try await WebServer(["/": .text("hello")])
        for forbidden in 0..<3 {
            let recorder = BackgroundRecorder()
            let session = daemon.session(recorder, "session \(forbidden)") {
                $0.allowsCellularAccess = forbidden != 0
                $0.allowsExpensiveNetworkAccess = forbidden != 1
                $0.allowsConstrainedNetworkAccess = forbidden != 2
                $0.resumesUploads = false
                $0.multipathServiceType = .handover
            }
            session.downloadTask(with: server.url()).resume()
            #expect(await recorder.log.has("completed 1"))
            #expect(seen.withLock { $0 } == [forbidden != 0, forbidden != 1, forbidden != 2, true, false, true])
            session.invalidateAndCancel()
        }
    }

    @Test func detachedSessionLeavesItsTasksToTheDaemon() async throws {
        let server = try await WebServer()
        let gate = Gate()
        server.on("/") { _ in .text("hello").after(gate) }
        let (daemon, first, second) = (try await BackgroundDaemon(), BackgroundRecorder(), BackgroundRecorder())
        let session = daemon.session(first)
        session.downloadTask(with: server.url()).resume()
        #expect(await server.hasReceived(1))
        session.detach()
        #expect(await first.log.has("invalid"))
        // The daemon hears of it a little later.
        let watch = try await DaemonWatch(daemon.folders)
        await watch.answered()
        let later = daemon.session(second)
        gate.open()
        #expect(await second.log.has("completed 1"))
        #expect(second.notes.files[1] == Data("hello".utf8) && !first.log.names.contains("completed 1"))
        #expect(server.requests.count == 1)
        later.invalidateAndCancel()
    }

    @Test func partOfAnImpossibleLengthIsNoTrap() async throws {
        let server = try await WebServer()
        server.on(
            "/",
            oneByOne: [
                .head(200, ["Content-Length: 100000"] + ResumedDownloadTests.good).then(
                    .send(Array(ResumedDownloadTests.whole.utf8.prefix(50_000))), .reset),
                .head(
                    206,
                    ResumedDownloadTests.good
                        + ["Content-Range: bytes 50000-99999/*", "Content-Length: \(Int64.max)"]
                ).then(.reset),
                .head(200, ["Content-Length: 5"]).then(.send(Array("hello".utf8))),
            ])
        let recorder = BackgroundRecorder()
        let session = try await BackgroundDaemon().session(recorder)
        session.downloadTask(with: server.url()).resume()
        #expect(await recorder.log.has("completed 1"))
        #expect(recorder.notes.files[1] == Data("hello".utf8))
        session.invalidateAndCancel()
    }

    @Test func fileIsCopiedWhateverItsPathNamesMeanwhile() async throws {
        let server = try await WebServer()
        server.on("/") { .text("got \($0.bodyCount)", status: 201) }
        let (recorder, folder) = (BackgroundRecorder(), try TemporaryFolder())
        let session = try await BackgroundDaemon().session(recorder)
        let file = folder.url.appending(path: "body")
        try Data("the body".utf8).write(to: file)
        let handle = try FileHandle(forReadingFrom: file)
        try FileManager.default.removeItem(at: file)
        let open = URL(filePath: "/proc/self/fd/\(handle.fileDescriptor)")
        session.uploadTask(with: .to(server.url(), "PUT"), fromFile: open).resume()
        #expect(await recorder.log.has("completed 1"))
        #expect(server.requests.map(\.text) == ["the body"])
        try handle.close()
        session.invalidateAndCancel()
    }

    @Test func manyLargeTransfersAndMessagesArriveOneAfterTheOther() async throws {
        let daemon = try await BackgroundDaemon()
        let program = try daemon.program()
        for identifier in 1...40 {
            var request = TransferRequest(url: "http://127.0.0.1:1/", method: "POST", body: Data(count: 1 << 20))
            request.fields = ["A": String(repeating: "a", count: 200_000)]
            let transfer = TransferRecord(identifier: identifier, kind: .download, request: request)
            #expect(program.perform(.create(transfer)) == .success(.done))
            guard identifier % 2 == 0 else { continue }
            #expect(program.perform(.cancel(task: identifier, reason: nil)) == .success(.done))
        }
        program.close()
        let watch = try await DaemonWatch(daemon.folders)
        await watch.answered()
        let recorder = BackgroundRecorder()
        let session = daemon.session(recorder)
        #expect(await recorder.log.has("events"))
        #expect(recorder.notes.errors.keys.sorted() == Array(stride(from: 2, through: 40, by: 2)))
        #expect(await session.allTasks.map(\.taskIdentifier) == Array(stride(from: 1, through: 39, by: 2)))
        session.invalidateAndCancel()
    }

    @Test func transferOfFormerSettingsStopsAtOnce() async throws {
        let server = try await WebServer(["/": ResumedDownloadTests.half()])
        let (daemon, recorder) = (try await BackgroundDaemon(), BackgroundRecorder())
        let program = try daemon.program()
        let request = TransferRequest(url: server.url().absoluteString)
        #expect(
            program.perform(.create(TransferRecord(identifier: 1, kind: .download, request: request)))
                == .success(.done))
        #expect(program.perform(.resume(task: 1)) == .success(.done))
        #expect(await server.hasReceived(1))
        program.close()
        let watch = try await DaemonWatch(daemon.folders)
        await watch.answered()
        // Its first transfer begins with settings of its own, the second one stops one of the former settings.
        let session = daemon.session(recorder) { $0.httpMaximumConnectionsPerHost = 3 }
        session.downloadTask(with: server.url()).resume()
        #expect(await server.hasReceived(2))
        await session.allTasks.first { $0.taskIdentifier == 1 }?.suspend()
        #expect(await server.hasLost(0))
        session.invalidateAndCancel()
    }
}
