import BackgroundTransfers
import Foundation
import Testing
import URLLoading

/// Limits files to 1 MiB: the system refuses further writes like on a full disk. In a separate process with its own folder
/// for temporary files.
private final class SmallDisk {
    static let size = 1 << 20
    let folder: TemporaryFolder

    init() throws {
        self.folder = try TemporaryFolder()
        setenv("TMPDIR", self.folder.url.path, 1)
        signal(SIGXFSZ, SIG_IGN)
        var limit = rlimit(rlim_cur: rlim_t(Self.size), rlim_max: rlim_t(Self.size))
        guard setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0 else { throw POSIXError(.EPERM) }
    }
}

@Suite("Downloads onto a disk that is full", .loading, .timeLimit(.minutes(20)))
struct FullDiskTests {
    @Test func fullDiskFailsTheDownloadAndLeavesNothing() async {
        await #expect(processExitsWith: .success) {
            let disk = try SmallDisk()
            let body = Answer.response(200, ["ETag: \"a\""], [UInt8](repeating: 7, count: 3 * SmallDisk.size))
            let server = try await WebServer(["/": body])
            let recorder = DataRecorder()
            let session = URLSession.test(recorder)
            session.downloadTask(with: server.url()).resume()
            let notes = try await recorder.end()
            let error = try #require(notes.error as? URLError)
            let cause = try #require(error.userInfo[NSUnderlyingErrorKey] as? NSError)
            try #require(error.code == .cannotWriteToFile && error.failingURL == server.url())
            try #require(cause.domain == NSPOSIXErrorDomain && cause.code == Int(EFBIG))
            // A download that could not be written cannot be resumed.
            try #require(error.downloadTaskResumeData == nil && notes.file == nil && notes.completions == 1)
            session.finishTasksAndInvalidate()
            try #require(await recorder.log.has("invalid"))
            try #require(try disk.folder.names == [])
        }
    }

    @Test func fullDiskFailsDownloadsOfOtherStyles() async {
        await #expect(processExitsWith: .success) {
            let disk = try SmallDisk()
            let server = try await WebServer([
                "/": .response(200, [], [UInt8](repeating: 7, count: 3 * SmallDisk.size)), "/small": .text("fits"),
            ])
            let session = URLSession.test()
            let ended = Outcome<(any Error)?>()
            session.downloadTask(with: server.url()) { _, _, error in ended.give(error) }.resume()
            try #require((try await ended.value() as? URLError)?.code == .cannotWriteToFile)
            do {
                _ = try await session.download(from: server.url())
                try #require(Bool(false))
            } catch let error as URLError {
                try #require(error.code == .cannotWriteToFile)
            }
            // Other downloads continue.
            let (file, _) = try await session.download(from: server.url("/small"))
            try #require(try Data(contentsOf: file) == Data("fits".utf8))
            try #require(try await session.data(from: server.url()).0.count == 3 * SmallDisk.size)
            try FileManager.default.removeItem(at: file)
            try #require(try disk.folder.names == [])
        }
    }

    @Test(.choosesItsConnections) func fullDiskFailsTheBackgroundDownloadAndLeavesNothing() async {
        await #expect(processExitsWith: .success) {
            let daemon = try await BackgroundDaemon()
            let disk = try SmallDisk()
            let body = Answer.response(
                200, ["ETag: \"a\"", "Accept-Ranges: bytes"], [UInt8](repeating: 7, count: 3 * SmallDisk.size))
            let server = try await WebServer(["/": body])
            let recorder = BackgroundRecorder()
            let session = daemon.session(recorder)
            session.downloadTask(with: server.url()).resume()
            try #require(await recorder.log.has("completed 1"))
            let error = try #require(recorder.notes.errors[1])
            try #require(error.code == .cannotWriteToFile && error.downloadTaskResumeData == nil)
            let folder = daemon.folders.session("test")
            try #require(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
            try #require(try disk.folder.names == [])
            session.invalidateAndCancel()
        }
    }

    @Test func missingFolderFailsTheDownload() async {
        await #expect(processExitsWith: .success) {
            let disk = try SmallDisk()
            try FileManager.default.removeItem(at: disk.folder.url)
            let server = try await WebServer(["/": .text("hello")])
            let session = URLSession.test()
            let ended = Outcome<(any Error)?>()
            session.downloadTask(with: server.url()) { _, _, error in ended.give(error) }.resume()
            try #require((try await ended.value() as? URLError)?.code == .cannotCreateFile)
        }
    }
}
