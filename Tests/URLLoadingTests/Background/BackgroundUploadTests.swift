import Foundation
import Testing
import URLLoading

@Suite(
    "Background uploads that are continued", .loading, .choosesItsConnections, .onlyWithHTTP11, .timeLimit(.minutes(20))
)
struct BackgroundUploadTests {
    private static let content = InterruptedUpload.content

    /// A server whose upload to `/up` is continued at `/part`, and a session with a task that uploads to it.
    private struct Scene {
        let server: WebServer
        let recorder = BackgroundRecorder()
        let watch: DaemonWatch
        let session: URLSession
        let task: URLSessionUploadTask
        private let folder: TemporaryFolder

        init() async throws {
            let (server, folder) = (try await WebServer(), try TemporaryFolder())
            let file = folder.url.appending(path: "body")
            try BackgroundUploadTests.content.write(to: file)
            let daemon = try await BackgroundDaemon()
            let session = daemon.session(self.recorder)
            self.task = session.uploadTask(with: .to(server.url("/up"), "PUT"), fromFile: file)
            self.watch = try await DaemonWatch(daemon.folders)
            (self.server, self.folder, self.session) = (server, folder, session)
        }

        var parts: [String] { self.server.requests.map { "\($0.method) \($0.path)" } }
    }

    @Test func suspendedUploadIsContinuedByAnotherAttempt() async throws {
        let scene = try await Scene()
        scene.server.onHead("/up") { _ in .head(104, InterruptedUpload.announcement()).then(.hang) }
        scene.server.on("/part", Answer.continuing(at: 70_000))
        scene.task.resume()
        #expect(await scene.watch.log.has("named 1"))
        scene.task.suspend()
        scene.task.resume()
        #expect(await scene.recorder.log.has("completed 1"))
        #expect(scene.recorder.notes.errors.isEmpty && scene.recorder.notes.data[1] == Data("done".utf8))
        #expect(scene.parts == ["HEAD /part", "PATCH /part"])
        #expect(scene.server.requests.last.map { Data($0.body) } == Self.content.dropFirst(70_000))
        #expect(scene.task.countOfBytesSent == Int64(Self.content.count))
        scene.session.invalidateAndCancel()
    }

    @Test(arguments: [404, 410, 403])
    func uploadThatTheServerHasForgottenBeginsAnew(_ status: Int) async throws {
        let scene = try await Scene()
        scene.server.onHead("/up") { _ in .head(104, InterruptedUpload.announcement()).then(.hang) }
        scene.server.on("/part", .head(status))
        scene.task.resume()
        #expect(await scene.watch.log.has("named 1"))
        scene.task.suspend()
        scene.server.on("/up") { .text("got \($0.bodyCount)", status: 201) }
        scene.task.resume()
        #expect(await scene.recorder.log.has("completed 1"))
        #expect(scene.recorder.notes.data[1] == Data("got \(Self.content.count)".utf8))
        #expect(scene.parts == ["HEAD /part", "PUT /up"])
        scene.session.invalidateAndCancel()
    }

    @Test func uploadThatIsRedirectedIsNotContinuedAtItsFirstServer() async throws {
        let scene = try await Scene()
        let known = Gate()
        scene.server.on("/up") { _ in
            .head(104, InterruptedUpload.announcement()).then(.wait(known)).then(.redirect(307, to: "/there"))
        }
        scene.server.onHead("/there") { _ in .hang }
        scene.task.resume()
        #expect(await scene.watch.log.has("named 1"))
        known.open()
        #expect(await scene.watch.log.has("unnamed 1"))
        scene.session.invalidateAndCancel()
    }
}
