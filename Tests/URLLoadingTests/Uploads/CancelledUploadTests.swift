import Foundation
import HTTPSemantics
import Synchronization
import Testing
import URLLoading

@Suite("Cancelled uploads", .loading, .timeLimit(.minutes(20)))
struct CancelledUploadTests {
    private static let content = InterruptedUpload.content

    /// A server that announces the upload and then waits, and a session with one upload that it knows of.
    private final class Scene: Sendable {
        let server: WebServer
        let recorder: DataRecorder
        let session: URLSession
        let task: URLSessionUploadTask
        let deleted = Gate()

        init(at location: String = "/part", deletion: Answer = .head(204)) async throws {
            let (known, deleted) = (Gate(), self.deleted)
            var policies = Policies()
            policies.informational = { _ in known.open() }
            self.server = try await WebServer()
            self.server.onHead("/up") { _ in .head(104, InterruptedUpload.announcement(9, at: location)).then(.hang) }
            self.server.on("/part") { _ in
                deleted.open()
                return deletion
            }
            self.recorder = DataRecorder(policies)
            self.session = URLSession.test(self.recorder) { $0.urlCache = nil }
            var request = URLRequest.to(self.server.url("/up"), "POST", ["Content-Type": "text/plain", "X-Own": "1"])
            request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
            self.task = self.session.uploadTask(with: request, from: CancelledUploadTests.content)
            self.task.resume()
            await known.pass()
        }

        var deletions: [ReceivedRequest] { self.server.requests("/part") }
    }

    @Test func serverIsAskedToDeleteACancelledUpload() async throws {
        let scene = try await Scene()
        scene.task.cancel()
        #expect((try await scene.recorder.end().error as? URLError)?.code == .cancelled)
        await scene.deleted.pass()
        let request = try #require(scene.deletions.first)
        #expect(scene.deletions.count == 1 && request.method == "DELETE" && request.bodyCount == 0)
        #expect(request["Upload-Draft-Interop-Version"] == "9" && request["Authorization"] == "Bearer secret")
        #expect(request["X-Own"] == "1" && request["Upload-Offset"] == nil && request["Content-Type"] == nil)
        scene.session.invalidateAndCancel()
    }

    @Test func uploadWithResumeDataIsNotDeleted() async throws {
        let scene = try await Scene()
        #expect(await scene.task.cancelByProducingResumeData() != nil)
        // Another connection, so that the server has received whatever was sent before.
        scene.server.on("/after", .text("after"))
        _ = try await scene.session.data(from: scene.server.url("/after"))
        #expect(scene.deletions.isEmpty)
        scene.session.invalidateAndCancel()
    }

    /// The server must not make us delete something of another one.
    @Test func uploadAtAnotherOriginIsNotDeleted() async throws {
        let other = try await WebServer()
        let scene = try await Scene(at: other.url("/part").absoluteString)
        scene.task.cancel()
        #expect((try await scene.recorder.end().error as? URLError)?.code == .cancelled)
        other.on("/after", .text("after"))
        _ = try await scene.session.data(from: other.url("/after"))
        #expect(other.requests.map(\.path) == ["/after"])
        scene.session.invalidateAndCancel()
    }

    @Test func invalidationDoesNotWaitForTheDeletion() async throws {
        let scene = try await Scene(deletion: .hang)
        scene.session.invalidateAndCancel()
        #expect((try await scene.recorder.end().error as? URLError)?.code == .cancelled)
        while !scene.recorder.events.contains("invalid") { await Task.yield() }
    }

    /// The client must not continue it, and should cancel it.
    @Test func uploadOfAContradictoryServerIsDeleted() async throws {
        let deleted = Gate()
        let upload = try await InterruptedUpload { request in
            guard request.method == "DELETE" else { return .offset(200_001) }
            deleted.open()
            return .head(204)
        }
        let error = try #require(try await upload.run().error as? URLError)
        #expect(error.uploadTaskResumeData == nil)
        #expect(await deleted.pass())
        // The server notes a request after it has chosen the answer.
        while upload.parts.count < 2 { await Task.yield() }
        #expect(upload.parts == ["HEAD", "DELETE"])
    }

    @Test func failedUploadIsNotDeleted() async throws {
        let upload = try await InterruptedUpload { _ in .head(403) }
        let error = try #require(try await upload.run().error as? URLError)
        #expect(error.uploadTaskResumeData != nil)
        upload.server.on("/after", .text("after"))
        _ = try await upload.session.data(from: upload.server.url("/after"))
        #expect(upload.parts == ["HEAD"])
    }

    // MARK: Lifetime

    @Test func uploadIsNotContinuedAfterItsLifetime() async throws {
        let announcement = InterruptedUpload.announcement(9, more: ["Upload-Limit: max-age=0"])
        let upload = try await InterruptedUpload(announcing: announcement, answers: Answer.continuing(at: 9))
        let error = try #require(try await upload.run().error as? URLError)
        #expect(error.code == .networkConnectionLost && error.uploadTaskResumeData == nil && upload.parts == [])
    }

    @Test func resumeDataKnowTheLifetime() async throws {
        let announcement = InterruptedUpload.announcement(9, more: ["Upload-Limit: max-age=3600"])
        let upload = try await InterruptedUpload(announcing: announcement) { _ in .head(403) }
        let data = try await upload.resumeData { $0.uploadTask(with: $1, from: Self.content) }
        var stored = try #require(UploadResumeData(data))
        let expiry = try #require(stored.expiry).seconds
        #expect((3500...3600).contains(expiry - Int64(Date().timeIntervalSince1970)))
        stored.expiry = HTTPDate(seconds: 1000)
        let old = try #require(stored.encoded())
        let error = await #expect(throws: URLError.self) { try await upload.session.upload(resumeFrom: old) }
        #expect(error?.code == .badServerResponse && upload.parts == ["HEAD"])
    }
}
