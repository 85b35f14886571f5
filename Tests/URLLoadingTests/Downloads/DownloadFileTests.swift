import ByteKernels
import Foundation
import Synchronization
import Testing
import URLLoading

@Suite("Files of downloads")
struct DownloadFileTests {
    private func finish(_ file: DownloadFile) async -> Result<Int64, DownloadFileFailure> {
        await withCheckedContinuation { continuation in
            file.finish { continuation.resume(returning: $0) }
        }
    }

    private func sample(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 3 &+ $0 >> 9) }
    }

    @Test func temporaryFileIsAccessibleToItsOwnerOnly() async throws {
        let file = try DownloadFile()
        defer { file.remove() }
        let attributes = try FileManager.default.attributesOfItem(atPath: file.url.path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(file.url.deletingLastPathComponent().path == FileManager.default.temporaryDirectory.path)
        #expect(file.name?.url == file.url)
        #expect(await self.finish(file) == .success(0))
    }

    @Test func downloadFileHasItsBytesInOrder() async throws {
        let file = try DownloadFile()
        defer { file.remove() }
        let bytes = self.sample(777_777)
        for start in stride(from: 0, to: bytes.count, by: 10_001) {
            let piece = Array(bytes[start..<min(bytes.count, start + 10_001)])
            file.append(piece.span.bytes)
        }
        #expect(await self.finish(file) == .success(Int64(bytes.count)))
        #expect(file.length == Int64(bytes.count))
        #expect(try [UInt8](Data(contentsOf: file.url)) == bytes)
    }

    @Test func downloadFileReportsAFullQueueAndRoom() async throws {
        let file = try DownloadFile()
        defer { file.remove() }
        let piece = [UInt8](repeating: 7, count: 3 * DownloadFile.queueLimit)
        for _ in 0..<4 {
            await withCheckedContinuation { continuation in
                file.observe { _ in continuation.resume() }
                if file.append(piece.span.bytes) { continuation.resume() }
            }
        }
        #expect(await self.finish(file) == .success(Int64(4 * piece.count)))
    }

    @Test func fullDiskIsAnError() async throws {
        let descriptor = open("/dev/full", O_WRONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
        let file = DownloadFile(descriptor, url: URL(fileURLWithPath: "/none/at/all"), offset: 0)
        let expected = DownloadFileFailure(step: .writing, number: ENOSPC)
        let failure: DownloadFileFailure? = await withCheckedContinuation { continuation in
            file.observe { notice in
                if case .failed(let failure) = notice { continuation.resume(returning: failure) }
            }
            let bytes: [UInt8] = [1, 2, 3]
            file.append(bytes.span.bytes)
        }
        #expect(failure == expected && expected.code == .cannotWriteToFile)
        #expect(failure?.underlying?.domain == NSPOSIXErrorDomain && failure?.underlying?.code == Int(ENOSPC))
        let more: [UInt8] = [4]
        file.append(more.span.bytes)
        #expect(await self.finish(file) == .failure(expected) && file.length == 0)
    }

    @Test func downloadFileContinuesAtTheResumeOffset() async throws {
        let first = try DownloadFile()
        defer { first.remove() }
        let bytes = self.sample(1000)
        first.append(bytes.span.bytes)
        #expect(await self.finish(first) == .success(1000))
        let name = try #require(first.name)
        #expect(throws: DownloadFileFailure.self) { try DownloadFile(resuming: name, at: 1001) }
        let second = try DownloadFile(resuming: name, at: 900)
        let rest: [UInt8] = [1, 2, 3]
        second.append(rest.span.bytes)
        #expect(await self.finish(second) == .success(903))
        #expect(try [UInt8](Data(contentsOf: second.url)) == Array(bytes.prefix(900)) + rest)
    }

    @Test func replacedFileIsNotResumed() throws {
        let folder = try TemporaryFolder()
        let victim = folder.url.appendingPathComponent("victim")
        try Data([1, 2, 3]).write(to: victim)
        let letters = Array("abcdefghijklmnopqrstuvwxyz")
        let middle = String((0..<12).compactMap { _ in letters.randomElement() })
        let name = try #require(DownloadFileName("URLLoadingDownload_\(middle).tmp"))
        #expect(throws: DownloadFileFailure(step: .reopening, number: ENOENT)) {
            try DownloadFile(resuming: name, at: 1)
        }
        try FileManager.default.createSymbolicLink(at: name.url, withDestinationURL: victim)
        #expect(throws: DownloadFileFailure.self) { try DownloadFile(resuming: name, at: 1) }
        try FileManager.default.removeItem(at: name.url)
        try FileManager.default.linkItem(at: victim, to: name.url)
        #expect(throws: DownloadFileFailure(step: .reopening, number: 0)) { try DownloadFile(resuming: name, at: 1) }
        try FileManager.default.removeItem(at: name.url)
        #expect(try Data(contentsOf: victim) == Data([1, 2, 3]))
    }

    @Test func discardedFileIsGone() throws {
        let file = try DownloadFile()
        let bytes = [UInt8](repeating: 0, count: 100_000)
        file.append(bytes.span.bytes)
        file.discard()
        #expect(!FileManager.default.fileExists(atPath: file.url.path))
    }

    @Test(arguments: [
        "", "x", "URLLoadingDownload_.tmp", "URLLoadingDownload_abcdefghijk.tmp",
        "URLLoadingDownload_abcdefghijklm.tmp",
        "URLLoadingDownload_../../../etc.tmp", "URLLoadingDownload_abc/efghijkl.tmp",
        "URLLoadingDownload_abcdefghijkl.tmp/",
        "/URLLoadingDownload_abcdefghijkl.tmp", "URLLoadingDownload_abcdefghij\u{0}l.tmp",
        "URLLoadingDownload_äöüäöü.tmp",
    ])
    func foreignFileNameIsRejected(_ text: String) {
        #expect(DownloadFileName(text) == nil)
    }
}
