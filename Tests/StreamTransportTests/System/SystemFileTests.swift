import Foundation
import StreamTransport
import Synchronization
import Testing

@Suite("Small files")
struct SystemFileTests {
    private let path = NSTemporaryDirectory() + "sluice-file-\(UUID().uuidString)"

    private func remove() { try? FileManager.default.removeItem(atPath: self.path) }

    @Test func fileIsReadUpToItsLimit() throws {
        defer { self.remove() }
        try Data("abc".utf8).write(to: URL(fileURLWithPath: self.path))
        #expect(try SystemFile.read(self.path, limit: 3) == Array("abc".utf8))
        #expect(throws: SystemError(EFBIG)) { try SystemFile.read(self.path, limit: 2) }
    }

    /// Nobody writes to it: opening it would wait forever.
    @Test func fifoIsRefused() throws {
        defer { self.remove() }
        #expect(mkfifo(self.path, 0o600) == 0)
        let path = self.path
        let error = Mutex<SystemError?>(nil)
        let end = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            do throws(SystemError) {
                _ = try SystemFile.read(path, limit: 10)
            } catch let failure {
                error.withLock { $0 = failure }
            }
            end.signal()
        }
        #expect(end.wait(timeout: .now() + 60) == .success)
        #expect(error.withLock { $0 } == .fifo)
    }

    @Test func fifoIsReadToItsEndWhereThatIsWanted() throws {
        defer { self.remove() }
        #expect(mkfifo(self.path, 0o600) == 0)
        let path = self.path
        Thread.detachNewThread { try? Data("abc".utf8).write(to: URL(fileURLWithPath: path)) }
        #expect(try SystemFile.read(path, limit: 10, waits: true) == Array("abc".utf8))
    }
}
