import Foundation
import Synchronization
import Testing
import URLLoading

@Suite("Resumable uploads to SwiftNIO's server", .timeLimit(.minutes(5)))
struct NIOUploadTests {
    private static let content = Data((0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) })

    private func session(_ delegate: (any URLSessionDelegate)? = nil) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connectionProxyDictionary = [:]
        return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    private func request(_ server: ResumableServer, version: Int? = nil) throws -> URLRequest {
        var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:\(server.port)/target")))
        request.httpMethod = "POST"
        if let version { request.setValue("\(version)", forHTTPHeaderField: "Upload-Draft-Interop-Version") }
        return request
    }

    /// SwiftNIO does not know the newest version: its answer says which it knows.
    @Test func versionOfNIOsServerIsAdopted() async throws {
        let server = try await ResumableServer(cuts: [])
        let session = self.session()
        let (data, response) = try await session.upload(for: self.request(server), from: Self.content)
        #expect(data == Data("taken".utf8) && (response as? HTTPURLResponse)?.statusCode == 201)
        #expect(Data(server.content) == Self.content)
        session.invalidateAndCancel()
        try await server.stop()
    }

    @Test(arguments: [3, 5, 6], [2000, 70_000, 500_000, 1_048_000])
    func uploadContinuesAtNIOsServer(_ version: Int, _ cut: Int) async throws {
        let server = try await ResumableServer(cuts: [cut, 100_000])
        let session = self.session()
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("NIOUploadTests-\(UUID())")
        try Self.content.write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let (data, _) = try await session.upload(for: self.request(server, version: version), fromFile: file)
        #expect(data == Data("taken".utf8) && Data(server.content) == Self.content)
        #expect(server.connections > 1)
        session.invalidateAndCancel()
        try await server.stop()
    }

    @Test func uploadToNIOsServerIsResumedLater() async throws {
        let server = try await ResumableServer(cuts: [300_000], stalls: true)
        let canceller = Canceller()
        let session = self.session(canceller)
        session.uploadTask(with: try self.request(server, version: 6), from: Self.content).resume()
        let data = try #require(await canceller.resumeData())
        let (text, _) = try await session.upload(resumeFrom: data)
        #expect(text == Data("taken".utf8) && Data(server.content) == Self.content)
        session.invalidateAndCancel()
        try await server.stop()
    }
}

extension NIOUploadTests {
    @Test func cancelledUploadIsDeletedFromNIOsServer() async throws {
        let server = try await ResumableServer(cuts: [300_000], stalls: true)
        let canceller = Canceller(keepsData: false)
        let session = self.session(canceller)
        let request = try self.request(server, version: 6)
        session.uploadTask(with: request, from: Self.content).resume()
        let location = try #require(await canceller.location())
        var question = URLRequest(url: try #require(URL(string: location, relativeTo: request.url)))
        question.httpMethod = "HEAD"
        question.setValue("6", forHTTPHeaderField: "Upload-Draft-Interop-Version")
        var status = 204
        while status == 204 {
            status = (try await session.data(for: question).1 as? HTTPURLResponse)?.statusCode ?? 0
        }
        #expect(status == 404 && server.content.isEmpty)
        session.invalidateAndCancel()
        try await server.stop()
    }
}

/// Cancels its first task as soon as the server has announced that it can be resumed.
private final class Canceller: NSObject, URLSessionTaskDelegate, Sendable {
    private let data = AsyncStream<Data?>.makeStream()
    private let locations = AsyncStream<String?>.makeStream()
    private let isFirst = Atomic(true)
    private let keepsData: Bool

    /// - Parameter keepsData: whether it asks for resume data.
    init(keepsData: Bool = true) { self.keepsData = keepsData }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) {
        guard response.statusCode == 104, self.isFirst.exchange(false, ordering: .relaxed),
            let task = task as? URLSessionUploadTask
        else { return }
        guard self.keepsData else {
            task.cancel()
            self.locations.continuation.yield(response.value(forHTTPHeaderField: "Location"))
            return
        }
        task.cancel { self.data.continuation.yield($0) }
    }

    /// That of the upload that was cancelled.
    func location() async -> String? {
        for await location in self.locations.stream { return location }
        return nil
    }

    func resumeData() async -> Data? {
        for await data in self.data.stream { return data }
        return nil
    }
}
