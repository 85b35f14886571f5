import Foundation
import Testing
import URLLoading

@Suite("Resumed uploads", .loading, .timeLimit(.minutes(20)))
struct ResumedUploadTests {
    private static let content = InterruptedUpload.content

    private func file(in folder: TemporaryFolder) throws -> URL {
        let file = folder.url.appendingPathComponent("up")
        try Self.content.write(to: file)
        return file
    }

    /// An upload that fails because its server does not tell the offset.
    private func refused() async throws -> InterruptedUpload { try await InterruptedUpload { _ in .head(403) } }

    @Test func failedUploadIsResumedByAnotherSession() async throws {
        let upload = try await self.refused()
        let folder = try TemporaryFolder()
        let file = try self.file(in: folder)
        let data = try await upload.resumeData { $0.uploadTask(with: $1, fromFile: file) }
        #expect((upload.recorder.error)?.userInfo[NSURLSessionUploadTaskResumeData] as? Data == data)
        upload.server.on("/part", Answer.continuing(at: 70_000))
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        let task = session.uploadTask(withResumeData: data)
        #expect(task.originalRequest?.url == upload.server.url("/up") && task.originalRequest?.httpMethod == "POST")
        #expect(task.countOfBytesExpectedToSend == 200_000)
        task.resume()
        let notes = try await recorder.end()
        #expect(notes.error == nil && notes.data == Data("done".utf8) && notes.sent.last?.total == 200_000)
        let parts = upload.server.requests("/part").suffix(2)
        #expect(parts.map(\.method) == ["HEAD", "PATCH"] && parts.allSatisfy { $0["X-Own"] == "1" })
        #expect(parts.last.map { Data($0.body) } == Self.content.dropFirst(70_000))
        session.invalidateAndCancel()
    }

    @Test func cancelledUploadIsResumedWithAHandler() async throws {
        let known = Gate()
        var policies = Policies()
        policies.informational = { _ in known.open() }
        let (server, recorder) = (try await WebServer(), DataRecorder(policies))
        server.onHead("/up") { _ in .head(104, InterruptedUpload.announcement()).then(.hang) }
        server.on("/part", Answer.continuing(at: 5))
        let session = URLSession.test(recorder)
        let task = session.uploadTask(with: .to(server.url("/up"), "PUT"), from: Self.content)
        task.resume()
        #expect(await known.pass())
        let data = try #require(await task.cancelByProducingResumeData())
        let error = try #require(try await recorder.end().error as? URLError)
        #expect(error.code == .cancelled && error.uploadTaskResumeData == data)
        #expect(await task.cancelByProducingResumeData() == nil)
        let outcome = Outcome<Loaded>()
        session.uploadTask(withResumeData: data) {
            outcome.give(Loaded(data: $0, response: $1, error: $2))
        }.resume()
        #expect(try await outcome.value().text == "done")
        #expect(server.requests("/part").last.map { Data($0.body) } == Self.content.dropFirst(5))
        session.invalidateAndCancel()
    }

    @Test func asyncUploadIsResumed() async throws {
        let upload = try await self.refused()
        let data = try await upload.resumeData { $0.uploadTask(with: $1, from: Self.content) }
        upload.server.on("/part", Answer.continuing(at: 199_999))
        let session = URLSession.test()
        let (text, response) = try await session.upload(resumeFrom: data)
        #expect(text == Data("done".utf8) && (response as? HTTPURLResponse)?.statusCode == 200)
        #expect(upload.server.requests("/part").last?.bodyCount == 1)
        session.invalidateAndCancel()
    }

    @Test func resumeDataOfASuspendedTaskAreReturned() async throws {
        let upload = try await self.refused()
        let data = try await upload.resumeData { $0.uploadTask(with: $1, from: Self.content) }
        let session = URLSession.test()
        let again = try #require(await session.uploadTask(withResumeData: data).cancelByProducingResumeData())
        #expect(UploadResumeData(again)?.resource == upload.server.url("/part"))
        session.invalidateAndCancel()
    }

    @Test func resumedStreamBeginsAtTheOffset() async throws {
        var policies = Policies()
        policies.stream = { $0(InputStream(data: Self.content)) }
        policies.streamRest = { InputStream(data: Self.content.dropFirst(Int($0))) }
        let upload = try await InterruptedUpload(policies: policies) { _ in .head(403) }
        let data = try await upload.resumeData { $0.uploadTask(withStreamedRequest: $1) }
        upload.server.on("/part", Answer.continuing(at: 70_000))
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        session.uploadTask(withResumeData: data).resume()
        #expect(try await recorder.end().error == nil)
        #expect(upload.server.requests("/part").last.map { Data($0.body) } == Self.content.dropFirst(70_000))
        session.invalidateAndCancel()
    }

    /// What happens to the file between the two parts.
    enum Change: CaseIterable {
        case content
        case growth
        case replacement
        case removal
    }

    @Test(arguments: Change.allCases)
    func changedFileIsNotResumed(_ change: Change) async throws {
        let upload = try await self.refused()
        let folder = try TemporaryFolder()
        let file = try self.file(in: folder)
        let data = try await upload.resumeData { $0.uploadTask(with: $1, fromFile: file) }
        upload.server.on("/part", Answer.continuing(at: 70_000))
        switch change {
        case .content: try self.overwrite(file, at: 100_000)
        case .growth: try self.overwrite(file, at: 200_000)
        case .replacement: try Self.content.write(to: file, options: .atomic)
        case .removal: try FileManager.default.removeItem(at: file)
        }
        let session = URLSession.test()
        let outcome = Outcome<Loaded>()
        session.uploadTask(withResumeData: data) {
            outcome.give(Loaded(data: $0, response: $1, error: $2))
        }.resume()
        let error = try #require(try await outcome.value().error as? URLError)
        #expect(error.code == (change == .removal ? .fileDoesNotExist : .cannotOpenFile))
        if change != .removal { #expect(error.localizedDescription.contains("changed since the upload began")) }
        #expect((error.uploadTaskResumeData != nil) == (change == .removal))
        // DELETE may follow, because the upload cannot be continued any more.
        #expect(upload.parts.prefix(2) == ["HEAD", "HEAD"] && !upload.parts.contains { $0.hasPrefix("PATCH") })
        session.invalidateAndCancel()
    }

    private func overwrite(_ file: URL, at offset: UInt64) throws {
        let handle = try FileHandle(forWritingTo: file)
        try handle.seek(toOffset: offset)
        try handle.write(contentsOf: Data("changed".utf8))
        try handle.close()
    }

    @Test func fileThatChangesBetweenTwoPartsFailsTheUpload() async throws {
        let folder = try TemporaryFolder()
        let file = try self.file(in: folder)
        let upload = try await InterruptedUpload { _ in
            try? Self.content.write(to: file, options: .atomic)
            return .offset(70_000)
        }
        upload.session.uploadTask(with: upload.request, fromFile: file).resume()
        let error = try #require(try await upload.recorder.end().error as? URLError)
        #expect(error.code == .cannotOpenFile && error.uploadTaskResumeData == nil)
    }

    @Test(arguments: [404, 410])
    func forgottenUploadHasNoResumeData(_ status: Int) async throws {
        let upload = try await InterruptedUpload { _ in .head(status) }
        let error = try #require(try await upload.run().error as? URLError)
        #expect(error.code == .networkConnectionLost && error.uploadTaskResumeData == nil)
        #expect(error.localizedDescription.contains("status \(status)"))
    }

    @Test func contradictoryServerFailsTheUpload() async throws {
        for fields in [["Upload-Offset: 200001"], ["Upload-Offset: 5", "Upload-Length: 7"]] {
            let upload = try await InterruptedUpload { _ in .head(204, fields) }
            let error = try #require(try await upload.run().error as? URLError)
            // DELETE may follow.
            #expect(error.uploadTaskResumeData == nil && !upload.parts.contains { $0.hasPrefix("PATCH") })
        }
        let resumed = try await self.refused()
        let data = try await resumed.resumeData { $0.uploadTask(with: $1, from: Self.content) }
        resumed.server.on("/part", .head(204))
        let session = URLSession.test()
        let error = await #expect(throws: URLError.self) { try await session.upload(resumeFrom: data) }
        #expect(error?.code == .badServerResponse)
        session.invalidateAndCancel()
    }

    @Test func plainCancellationGivesNoResumeData() async throws {
        let upload = try await InterruptedUpload { _ in .hang }
        let task = upload.session.uploadTask(with: upload.request, from: Self.content)
        task.resume()
        await upload.server.hasReceived(1)
        task.cancel()
        let error = try #require(try await upload.recorder.end().error as? URLError)
        #expect(error.code == .cancelled && error.uploadTaskResumeData == nil)
    }

    /// The upload has resume data from its beginning, however slowly the server's answer arrives.
    @Test func resourceTimeoutEndsThePauses() async throws {
        let upload = try await self.refused()
        let data = try await upload.resumeData { $0.uploadTask(with: $1, from: Self.content) }
        upload.server.on("/part", .head(503, ["Retry-After: 300"]))
        let recorder = Recorder()
        let session = URLSession.test(recorder) { $0.timeoutIntervalForResource = 2 }
        session.uploadTask(withResumeData: data).resume()
        let error = try #require(try await recorder.end().error as? URLError)
        #expect(error.code == .timedOut && error.uploadTaskResumeData != nil)
        session.invalidateAndCancel()
    }

    @Test func taskOfAnInvalidSessionGivesNoResumeData() async throws {
        let upload = try await self.refused()
        let data = try await upload.resumeData { $0.uploadTask(with: $1, from: Self.content) }
        let recorder = Recorder()
        let session = URLSession.test()
        session.invalidateAndCancel()
        let task = session.uploadTask(withResumeData: data)
        task.delegate = recorder
        #expect(await task.cancelByProducingResumeData() == nil)
        #expect((try await recorder.end().error as? URLError)?.code == .cancelled)
    }

    @Test func dataOfSeveralMegabytesAreResumed() async throws {
        let upload = try await self.refused()
        let content = Data(count: 3 << 20)
        let data = try await upload.resumeData { $0.uploadTask(with: $1, from: content) }
        #expect(data.count > content.count)
        upload.server.on("/part", Answer.continuing(at: 1 << 20))
        let session = URLSession.test()
        let (text, _) = try await session.upload(resumeFrom: data)
        #expect(text == Data("done".utf8) && upload.server.requests("/part").last?.bodyCount == 2 << 20)
        session.invalidateAndCancel()
    }

    @Test func largeDataAreNotResumed() async throws {
        let upload = try await self.refused()
        let error = try #require(
            try await upload.run(Data(count: UploadResumeData.bodyLimit + 1)).error as? URLError)
        #expect(error.uploadTaskResumeData == nil)
    }
}
