import Foundation
import Testing
import URLLoading

@Suite("Announcement of resumable uploads", .loading, .timeLimit(.minutes(20)))
struct UploadAnnouncementTests {
    private func server() async throws -> WebServer { try await WebServer(["/": .text("taken")]) }

    private func isAnnounced(_ request: ReceivedRequest) -> Bool {
        request.fields.contains { $0.name.lowercased().hasPrefix("upload-") }
    }

    @Test(arguments: ["POST", "PUT", "PATCH"])
    func uploadTaskAnnouncesThatItCanBeContinued(_ method: String) async throws {
        let server = try await self.server()
        let session = URLSession.test()
        _ = try await session.upload(for: .to(server.url(), method), from: Data("body".utf8))
        #expect(server.requests.allSatisfy { self.isAnnounced($0) } && server.requests.count == 1)
        session.invalidateAndCancel()
    }

    @Test func otherRequestsAnnounceNothing() async throws {
        let server = try await self.server()
        let session = URLSession.test()
        _ = try await session.data(for: .to(server.url(), "POST", body: "body"))
        _ = try await session.upload(for: .to(server.url(), "PUT"), from: Data())
        _ = try await session.upload(for: .to(server.url(), "DELETE"), from: Data("body".utf8))
        _ = try await session.download(for: .to(server.url(), "POST", body: "body"))
        // Without a delegate nothing supplies the rest of a stream.
        var streamed = URLRequest.to(server.url(), "PUT")
        streamed.httpBodyStream = InputStream(data: Data("body".utf8))
        let task = session.uploadTask(withStreamedRequest: streamed)
        task.resume()
        while task.state != .completed { await Task.yield() }
        for name in ["Upload-Offset", "Upload-Complete", "Upload-Incomplete", "Upload-Length", "Tus-Resumable"] {
            _ = try await session.upload(for: .to(server.url(), "PATCH", [name: "1"]), from: Data("body".utf8))
        }
        let version = ["Upload-Draft-Interop-Version": "2"]
        _ = try await session.upload(for: .to(server.url(), "PUT", version), from: Data("body".utf8))
        #expect(server.requests.count == 11)
        #expect(server.requests.prefix(5).allSatisfy { !self.isAnnounced($0) })
        for request in server.requests.dropFirst(5) {
            #expect(request.fields.count { $0.name.lowercased().hasPrefix("upload-") } <= 1, "\(request.head)")
        }
        session.invalidateAndCancel()
    }

    @Test func configurationTurnsAnnouncementsOff() async throws {
        let server = try await self.server()
        let session = URLSession.test { $0.resumesUploads = false }
        _ = try await session.upload(for: .to(server.url(), "PUT"), from: Data("body".utf8))
        #expect(server.requests.count == 1 && !self.isAnnounced(server.requests[0]))
        session.invalidateAndCancel()
    }

    @Test func fieldsOfTheSessionCountAsWell() async throws {
        let server = try await self.server()
        for (fields, version) in [(["Tus-Resumable": "1.0.0"], nil), (["Upload-Draft-Interop-Version": "6"], "6")] {
            let session = URLSession.test { $0.httpAdditionalHeaders = fields }
            _ = try await session.upload(for: .to(server.url(), "PUT"), from: Data("body".utf8))
            let heard = try #require(server.requests.last)
            #expect(heard["Upload-Draft-Interop-Version"] == version && self.isAnnounced(heard) == (version != nil))
            session.invalidateAndCancel()
        }
    }

    @Test(arguments: [3, 4, 5, 6, 7, 8, 9])
    func programChoosesTheVersion(_ version: Int) async throws {
        let upload = try await InterruptedUpload(announcing: InterruptedUpload.announcement(version)) { request in
            guard request["Upload-Draft-Interop-Version"] == "\(version)" else { return .head(400) }
            guard request.method == "HEAD" else { return .uploaded }
            return .offset(70_000, [version == 3 ? "Upload-Incomplete: ?1" : "Upload-Complete: ?0"])
        }
        var request = upload.request
        request.setValue("\(version)", forHTTPHeaderField: "Upload-Draft-Interop-Version")
        upload.session.uploadTask(with: request, from: InterruptedUpload.content).resume()
        #expect(try await upload.recorder.end().error == nil)
        #expect(upload.parts == ["HEAD", "PATCH 70000"])
        let part = try #require(upload.server.requests("/part").last)
        #expect(part[version == 3 ? "Upload-Incomplete" : "Upload-Complete"] == (version == 3 ? "?0" : "?1"))
    }

    @Test func versionOfTheServerIsAdoptedAndRemembered() async throws {
        let server = try await WebServer()
        server.on("/") { request in
            request["Upload-Draft-Interop-Version"] == "6"
                ? .text("taken") : .text("no", ["Upload-Draft-Interop-Version: 6"], status: 400)
        }
        let session = URLSession.test()
        for _ in 0..<2 {
            let (data, _) = try await session.upload(for: .to(server.url(), "PUT"), from: Data("body".utf8))
            #expect(data == Data("taken".utf8))
        }
        #expect(server.requests.map { $0["Upload-Draft-Interop-Version"] } == ["9", "6", "6"])
        #expect(server.requests.map(\.text) == ["body", "body", "body"])
        session.invalidateAndCancel()
    }

    @Test(arguments: [
        ["Location: /part"], ["Upload-Draft-Interop-Version: 8", "Location: /part"],
        ["Upload-Draft-Interop-Version: 9"], ["Upload-Draft-Interop-Version: 9", "Location: file:///etc/passwd"],
        ["Upload-Draft-Interop-Version: 9", "Location: http://"],
        ["Upload-Draft-Interop-Version: 9", "Location: /a", "Location: /b"],
    ])
    func unusableAnnouncementOfTheServerIsIgnored(_ announcement: [String]) async throws {
        let upload = try await InterruptedUpload(announcing: announcement) { _ in .offset(0) }
        let error = try #require(try await upload.run().error as? URLError)
        #expect(error.code == .networkConnectionLost && error.uploadTaskResumeData == nil && upload.parts == [])
    }
}
