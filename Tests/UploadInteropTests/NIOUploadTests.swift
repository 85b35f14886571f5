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

/// Cancels its first task as soon as the server has announced that it can be resumed.
private final class Canceller: NSObject, URLSessionTaskDelegate, Sendable {
    private let data = AsyncStream<Data?>.makeStream()
    private let isFirst = Atomic(true)

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) {
        guard response.statusCode == 104, self.isFirst.exchange(false, ordering: .relaxed),
            let task = task as? URLSessionUploadTask
        else { return }
        task.cancel { self.data.continuation.yield($0) }
    }

    func resumeData() async -> Data? {
        for await data in self.data.stream { return data }
        return nil
    }
}
