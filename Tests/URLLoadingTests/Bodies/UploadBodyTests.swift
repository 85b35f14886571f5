import ByteKernels
import Foundation
import HTTPTransport
import Testing
import URLLoading

@Suite("Upload bodies")
struct UploadBodyTests {
    private let folder: TemporaryFolder

    init() throws { self.folder = try TemporaryFolder() }

    private func file(_ bytes: [UInt8]) throws -> URL {
        let url = self.folder.url.appendingPathComponent("body")
        try Data(bytes).write(to: url)
        return url
    }

    private func sample(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) }
    }

    @Test(arguments: [0, 1, 1000, 300_000])
    func bodyInMemoryCanBeReadTwice(_ count: Int) async {
        let bytes = self.sample(count)
        let body = DataBody(Data([1, 2] + bytes).dropFirst(2))
        for _ in 0..<2 {
            let outcome = await BodyDrain.run(body, room: 999)
            #expect(outcome.bytes == bytes && outcome.end == .end)
            #expect(body.rewind())
        }
    }

    @Test(arguments: [0, 1, 262_144, 262_145, 3_000_000])
    func bodyFromAFileCanBeReadTwice(_ count: Int) async throws {
        let bytes = self.sample(count)
        let (body, length) = try ReadAheadBody.file(try self.file(bytes))
        #expect(length == Int64(count))
        for _ in 0..<2 {
            let outcome = await BodyDrain.run(body)
            #expect(outcome.bytes == bytes && outcome.end == .end)
            #expect(body.rewind())
        }
        body.close()
        #expect(await BodyDrain.run(body).end == .failed)
    }

    @Test func partlyReadFileBodyIsRewound() async throws {
        let bytes = self.sample(2_000_000)
        let body = try ReadAheadBody.file(try self.file(bytes)).body
        var room = [UInt8](repeating: 0, count: 1000)
        while case .later = room.withMutableRawSpan({ body.read(into: &$0) }) { await Task.yield() }
        #expect(body.rewind())
        #expect(await BodyDrain.run(body).bytes == bytes)
    }

    @Test func shortenedFileFailsTheBody() async throws {
        let url = try self.file(self.sample(3_000_000))
        let body = try ReadAheadBody.file(url).body
        try Data(self.sample(1_000_000)).write(to: url)  // in place, not by a new file
        let outcome = await BodyDrain.run(body)
        #expect(outcome.end == .failed && outcome.bytes.count <= 1_000_000)
        #expect(body.failure as? FileBodyFailure == .becameShorter(missing: 2_000_000))
    }

    @Test func bodyFromAFileKeepsItsLengthWhenTheFileChanges() async throws {
        let bytes = self.sample(600_000)
        let url = try self.file(bytes)
        let body = try ReadAheadBody.file(url).body
        let handle = try FileHandle(forWritingTo: url)
        try handle.seekToEnd()
        try handle.write(contentsOf: Data([1]))
        try FileManager.default.removeItem(at: url)
        #expect(await BodyDrain.run(body).bytes == bytes)
    }

    @Test func missingFileIsRefused() throws {
        #expect(throws: FileBodyFailure.notFound) {
            try ReadAheadBody.file(self.folder.url.appendingPathComponent("a"))
        }
        #expect(throws: FileBodyFailure.isDirectory) { try ReadAheadBody.file(self.folder.url) }
        #expect(throws: FileBodyFailure.notAFile) { try ReadAheadBody.file(URL(fileURLWithPath: "/dev/null")) }
        #expect(FileBodyFailure.notFound.code == .fileDoesNotExist)
        #expect(FileBodyFailure.isDirectory.code == .fileIsDirectory)
    }

    @Test(arguments: [0, 1, 70_000, 500_000])
    func bodyFromAStreamIsReadOnce(_ count: Int) async {
        let bytes = self.sample(count)
        let body = ReadAheadBody(InputStream(data: Data(bytes)))
        let outcome = await BodyDrain.run(body)
        #expect(outcome.bytes == bytes && outcome.end == .end)
        #expect(!body.rewind())
    }

    @Test func streamSubclassIsReadWithoutHasBytesAvailable() async {
        let outcome = await BodyDrain.run(ReadAheadBody(CustomStream(size: 10, rounds: 1000)))
        #expect(outcome.bytes.count == 10_000 && outcome.end == .end)
    }

    @Test func streamErrorFailsTheBody() async {
        let body = ReadAheadBody(CustomStream(size: 10, rounds: 3, failure: CocoaError(.fileReadCorruptFile)))
        let outcome = await BodyDrain.run(body)
        #expect(outcome.bytes.count == 30 && outcome.end == .failed)
        #expect((body.failure as? CocoaError)?.code == .fileReadCorruptFile)
    }

    @Test func deletedFileFailsTheBody() async throws {
        let stream = try #require(InputStream(fileAtPath: self.folder.url.appendingPathComponent("none").path))
        let body = ReadAheadBody(stream)
        #expect(await BodyDrain.run(body).end == .failed)
        #expect(body.failure != nil)
    }
}
