import Foundation
import StreamTransport
import Testing

@Suite("Standard error")
struct StandardErrorTests {
    /// Limits the size of files, as a full disk does.
    private static func limitFiles(to size: rlim_t) throws {
        var limit = rlimit(rlim_cur: size, rlim_max: 1 << 20)
        guard setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0 else { throw POSIXError(.EPERM) }
    }

    @Test func lineAfterOneThatWasCutBeginsOnItsOwn() async {
        await #expect(processExitsWith: .success) {
            let path = FileManager.default.temporaryDirectory.appending(path: "StandardErrorTests-\(UUID())").path
            defer { try? FileManager.default.removeItem(atPath: path) }
            let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
            try #require(descriptor >= 0 && dup2(descriptor, 2) == 2)
            signal(SIGXFSZ, SIG_IGN)
            try Self.limitFiles(to: 9)
            try #require(StandardError.write(Array("first\nsecond\n".utf8)) == SystemError(EFBIG))
            // Nothing of it is written, and the line before is as cut as it was.
            try #require(StandardError.write(Array("third\n".utf8)) == SystemError(EFBIG))
            try Self.limitFiles(to: 1000)
            try #require(StandardError.write(Array("fourth\n".utf8)) == nil)
            try #require(StandardError.write(Array("fifth\n".utf8)) == nil)
            try #require(try String(contentsOfFile: path, encoding: .utf8) == "first\nsec\nfourth\nfifth\n")
        }
    }
}
