import BackgroundTransfers
import Foundation
import Testing
import URLLoading

@Suite("Misuse of background sessions", .loading, .choosesItsConnections, .timeLimit(.minutes(20)))
struct BackgroundMisuseTests {
    /// The error with which the task of `make` ends.
    private static func error(
        _ make: (URLSession) -> URLSessionTask, _ change: (URLSessionConfiguration) -> Void = { _ in }
    ) async throws -> URLError? {
        let recorder = BackgroundRecorder()
        let session = try await BackgroundDaemon().session(recorder, "test", change)
        let task = make(session)
        task.resume()
        #expect(await recorder.log.has("completed \(task.taskIdentifier)"))
        session.invalidateAndCancel()
        return recorder.notes.errors[task.taskIdentifier]
    }

    @Test func otherTasksAndBodiesAreRefused() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let request = URLRequest.to(server.url(), "PUT")
        var streamed = request
        streamed.httpBodyStream = InputStream(data: Data("a".utf8))
        let makes: [@Sendable (URLSession) -> URLSessionTask] = [
            { $0.uploadTask(with: request, from: Data("a".utf8)) }, { $0.uploadTask(withStreamedRequest: request) },
            { [streamed] in $0.downloadTask(with: streamed) },
            { $0.streamTask(withHostName: "127.0.0.1", port: server.port) },
            { $0.webSocketTask(with: server.url()) }, { $0.downloadTask(with: URL(filePath: "/etc/hostname")) },
            { session in
                let task = session.downloadTask(with: server.url())
                task.delegate = SilentDelegate()
                return task
            },
        ]
        for make in makes {
            let error = try await Self.error(make)
            #expect(error?.code == .unsupportedURL)
        }
        #expect(server.requests.isEmpty)
    }

    @Test func transferOfARefusedTaskIsGivenUp() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let daemon = try await BackgroundDaemon()
        let recorder = BackgroundRecorder()
        let session = daemon.session(recorder)
        let task = session.downloadTask(with: server.url())
        task.delegate = SilentDelegate()
        task.resume()
        #expect(await recorder.log.has("completed 1"))
        session.downloadTask(with: server.url()).resume()
        #expect(await recorder.log.has("completed 2"))
        session.finishTasksAndInvalidate()
        #expect(await recorder.log.has("invalid"))
        #expect(recorder.log.count("completed 1") == 1 && server.requests.count == 1)
        // Nothing is left for another session.
        let other = daemon.session(BackgroundRecorder())
        #expect(await other.allTasks.isEmpty)
        other.invalidateAndCancel()
    }

    @Test func completionHandlersAreRefused() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = try await BackgroundDaemon().session(BackgroundRecorder())
        #expect(try await session.load(server.url()).code == .unsupportedURL)
        await #expect(throws: URLError.self) { try await session.download(from: server.url()) }
        await #expect(throws: URLError.self) { try await session.data(from: server.url()) }
        #expect(server.requests.isEmpty)
        session.invalidateAndCancel()
    }

    @Test func settingsThatCannotLeaveTheProgramAreRefused() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let changes: [@Sendable (URLSessionConfiguration) -> Void] = [
            { $0.permitsAddress = { _, _ in true } }, { $0.protocolClasses = [URLProtocol.self] },
            { $0.proxyConfigurations = [ProxyConfiguration(socksv5Proxy: .hostPort(host: "p.example", port: .socks))] },
            { $0.connectionProxyDictionary = ["HTTPEnable": Date()] }, { $0.ticketHosts = ["intranet.example.org"] },
        ]
        for change in changes {
            let error = try await Self.error({ $0.downloadTask(with: server.url()) }, change)
            #expect(error?.code == .unsupportedURL)
        }
        #expect(server.requests.isEmpty)
    }

    @Test func missingFileIsAnError() async throws {
        let error = try await Self.error {
            $0.uploadTask(with: .to(URL(filePath: "/"), "PUT"), fromFile: URL(filePath: "/nonexistent"))
        }
        #expect(error?.code == .unsupportedURL)
        let server = try await WebServer()
        let missing = try await Self.error {
            $0.uploadTask(with: .to(server.url(), "PUT"), fromFile: URL(filePath: "/nonexistent"))
        }
        #expect(missing?.code == .fileDoesNotExist)
    }

    @Test func sessionWithoutADaemonNamesWhatItNeeds() async throws {
        let folder = try TemporaryFolder()
        let folders = TransferFolders(runtime: "\(folder.url.path)/r", state: "\(folder.url.path)/s")
        let recorder = BackgroundRecorder()
        let session = URLSession.background("test", folders, recorder)
        session.downloadTask(with: URLRequest(url: URL(filePath: "/"))).resume()
        #expect(await recorder.log.has("completed 1"))
        let server = try await WebServer()
        session.downloadTask(with: server.url()).resume()
        #expect(await recorder.log.has("completed 2"))
        let error = recorder.notes.errors[2]
        #expect(error?.code == .backgroundSessionWasDisconnected)
        #expect(error?.localizedDescription.contains("/nonexistent cannot be executed") == true)
        session.invalidateAndCancel()
    }
}

/// Implements no method.
private final class SilentDelegate: NSObject, URLSessionTaskDelegate, Sendable {}
