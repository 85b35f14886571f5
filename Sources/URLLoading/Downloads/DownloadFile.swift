import ByteKernels
import DequeModule
import Dispatch
import Foundation
import StreamTransport
import Synchronization

/// The temporary file of a download, written on a queue of its own, with at most `queueLimit` bytes queued. Usable from any
/// thread.
package final class DownloadFile: Sendable {
    package enum Notice: Sendable {
        /// `append` returned `false`, and the queue has space again.
        case hasCapacity
        /// Writing has failed. Sent once.
        case failed(DownloadFileFailure)
    }

    package typealias Completion = @Sendable (Result<Int64, DownloadFileFailure>) -> Void

    private struct State {
        var queue = WriteQueue()
        var isWriting = false
        var isFull = false
        var isClosed = false
        /// Bytes written to the file.
        var length: Int64
        var failure: DownloadFileFailure?
        var finish: Completion?
        var observer: (@Sendable (Notice) -> Void)?
    }

    /// Largest number of bytes queued, not counting the block being written.
    package static let queueLimit = 1 << 20

    package let url: URL
    private let descriptor: Int32
    private let queue = DispatchQueue(label: "URLLoading.download")
    private let state: Mutex<State>

    /// Takes ownership of the descriptor; writes from `offset`.
    package init(_ descriptor: Int32, url: URL, offset: Int64) {
        self.descriptor = descriptor
        self.url = url
        self.state = Mutex(State(length: offset))
    }

    deinit {
        _ = Foundation.close(self.descriptor)
    }

    /// Bytes written, including those of an earlier attempt.
    package var length: Int64 { self.state.withLock { $0.length } }

    /// Calls `work` on the file's queue. Replaces an earlier observer.
    package func observe(_ work: @escaping @Sendable (Notice) -> Void) {
        self.state.withLock { $0.observer = work }
    }

    /// Queues a copy of `bytes`, which is dropped after `finish` or a failure.
    /// - Returns: whether to append more. If not, a notice follows; more bytes are still accepted.
    @discardableResult
    package func append(_ bytes: RawSpan) -> Bool {
        let (takesMore, begins) = self.state.withLock { state in
            guard !state.isClosed, state.failure == nil, bytes.byteCount > 0 else { return (!state.isFull, false) }
            state.queue.append(bytes)
            // `isFull` is only reset together with the notice.
            if state.queue.count >= Self.queueLimit { state.isFull = true }
            defer { state.isWriting = true }
            return (!state.isFull, !state.isWriting)
        }
        if begins { self.queue.async { self.write() } }
        return takesMore
    }

    /// Calls `completion` on the file's queue with the file's length once everything is written, or with the failure. The
    /// file stays in place.
    package func finish(_ completion: @escaping Completion) {
        let begins = self.state.withLock { state in
            state.finish = completion
            state.isClosed = true
            state.observer = nil
            defer { state.isWriting = true }
            return !state.isWriting
        }
        if begins { self.queue.async { self.write() } }
    }

    /// Drops the queue, and removes the file.
    package func discard() {
        self.state.withLock { state in
            state.isClosed = true
            state.queue = WriteQueue()
            state.observer = nil
        }
        self.remove()
    }

    package func remove() {
        unlink(self.url.path)
    }

    // MARK: On the queue

    private func write() {
        var block: [UInt8] = []
        while true {
            let (offset, hasCapacity) = self.state.withLock { state -> (Int64, (@Sendable (Notice) -> Void)?) in
                state.queue.exchange(&block)
                // At half the limit, so that the writer is not resumed for every block.
                guard state.isFull, state.queue.count <= Self.queueLimit / 2 else { return (state.length, nil) }
                state.isFull = false
                return (state.length, state.observer)
            }
            hasCapacity?(.hasCapacity)
            if block.isEmpty {
                if self.finishIfIdle() { return }
            } else if let failure = self.write(&block, at: offset) {
                return self.fail(failure)
            }
        }
    }

    private func write(_ bytes: inout [UInt8], at offset: Int64) -> DownloadFileFailure? {
        var offset = offset
        while !bytes.isEmpty {
            let count = pwrite(self.descriptor, bytes, bytes.count, off_t(offset))
            if count < 0 {
                let number = errno
                if number == EINTR { continue }
                return DownloadFileFailure(step: .writing, number: number)
            }
            offset += Int64(count)
            if count == bytes.count { bytes.removeAll(keepingCapacity: true) } else { bytes.removeFirst(count) }
            self.state.withLock { $0.length = offset }
        }
        return nil
    }

    /// - Returns: whether the queue was empty and the job can end.
    private func finishIfIdle() -> Bool {
        let (finish, result) = self.state.withLock { state -> (Completion?, Result<Int64, DownloadFileFailure>?) in
            guard state.queue.count == 0 else { return (nil, nil) }
            state.isWriting = false
            defer { state.finish = nil }
            return (state.finish, state.failure.map { .failure($0) } ?? .success(state.length))
        }
        if let result { finish?(result) }
        return result != nil
    }

    private func fail(_ failure: DownloadFileFailure) {
        let (finish, observer) = self.state.withLock { state in
            state.failure = failure
            state.queue = WriteQueue()
            state.isWriting = false
            defer { (state.finish, state.observer) = (nil, nil) }
            return (state.finish, state.observer)
        }
        if let finish { finish(.failure(failure)) } else { observer?(.failed(failure)) }
    }

    // MARK: Opening

    /// Creates an empty file in the temporary directory, with mode 0600.
    package convenience init() throws(DownloadFileFailure) {
        var number = EEXIST
        // Ten collisions of random names in a row only happen in an attack.
        for _ in 0..<10 where number == EEXIST {
            let url = DownloadFileName.random().url
            let descriptor = open(url.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
            if descriptor >= 0 {
                guard DescriptorReserve.process.admits(descriptor) else {
                    _ = Foundation.close(descriptor)
                    unlink(url.path)
                    throw DownloadFileFailure(step: .creating, number: EMFILE)
                }
                self.init(descriptor, url: url, offset: 0)
                return
            }
            number = errno
        }
        throw DownloadFileFailure(step: .creating, number: number)
    }

    /// Reopens the file of an earlier attempt and truncates it to `offset`.
    /// - Throws: also if the file is shorter, has another owner or other links, or is a symbolic link.
    package convenience init(resuming name: DownloadFileName, at offset: Int64) throws(DownloadFileFailure) {
        let descriptor = open(name.url.path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw DownloadFileFailure(step: .reopening, number: errno) }
        guard DescriptorReserve.process.admits(descriptor) else {
            _ = Foundation.close(descriptor)
            throw DownloadFileFailure(step: .reopening, number: EMFILE)
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid(),
            status.st_nlink == 1, offset >= 0, Int64(status.st_size) >= offset,
            ftruncate(descriptor, off_t(offset)) == 0
        else {
            _ = Foundation.close(descriptor)
            throw DownloadFileFailure(step: .reopening, number: 0)
        }
        self.init(descriptor, url: name.url, offset: offset)
    }

    package var name: DownloadFileName? { DownloadFileName(self.url.lastPathComponent) }
}

/// The name of a download's file, directly in the temporary directory: a forged name in resume data cannot point anywhere
/// else.
package struct DownloadFileName: Hashable, Sendable {
    private static let prefix = "URLLoadingDownload_"
    private static let suffix = ".tmp"
    private static let letters = Array("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
    private static let letterCount = 12

    package let text: String

    /// - Returns: `nil` if `random()` cannot have created the name.
    package init?(_ text: String) {
        guard text.hasPrefix(Self.prefix), text.hasSuffix(Self.suffix) else { return nil }
        let middle = text.utf8.dropFirst(Self.prefix.utf8.count).dropLast(Self.suffix.utf8.count)
        guard middle.count == Self.letterCount, middle.allSatisfy(Self.letters.contains) else { return nil }
        self.text = text
    }

    private init(middle: [UInt8]) {
        self.text = Self.prefix + String(decoding: middle, as: UTF8.self) + Self.suffix
    }

    /// An unpredictable name.
    package static func random() -> DownloadFileName {
        Self(middle: (0..<Self.letterCount).map { _ in Self.letters.randomElement() ?? Self.letters[0] })
    }

    package var url: URL { FileManager.default.temporaryDirectory.appendingPathComponent(self.text) }
}

/// Why the file of a download cannot be created, reopened or written.
package struct DownloadFileFailure: Error, Equatable, Sendable, CustomStringConvertible {
    package enum Step: Sendable {
        case creating
        /// The file of an earlier attempt.
        case reopening
        case writing
    }

    package let step: Step
    /// `errno`; 0 if the file is not the one that the earlier attempt left.
    package let number: Int32

    package init(step: Step, number: Int32) {
        self.step = step
        self.number = number
    }

    package var code: URLError.Code {
        switch self.step {
        case .creating: .cannotCreateFile
        case .reopening: .cannotOpenFile
        case .writing: .cannotWriteToFile
        }
    }

    /// The system's error, for `NSUnderlyingErrorKey`.
    package var underlying: NSError? {
        self.number == 0 ? nil : NSError(domain: NSPOSIXErrorDomain, code: Int(self.number))
    }

    package var description: String {
        let text = self.number == 0 ? "it is not the file of the interrupted download" : "\(SystemError(self.number))"
        return switch self.step {
        case .creating: "cannot create the download file: \(text)"
        case .reopening: "cannot reopen the download file: \(text)"
        case .writing: "cannot write the download file: \(text)"
        }
    }
}

/// A queue of bytes in blocks of one size, which are reused: memory does not exceed the longest queue so far.
package struct WriteQueue {
    /// Bytes in a block.
    package static let blockSize = 256 << 10
    /// Most empty blocks kept for reuse.
    private static let spareLimit = 8

    /// No block is empty, and all but the last are full.
    private var blocks: Deque<[UInt8]> = []
    private var spare: [[UInt8]] = []
    /// Bytes in all.
    package private(set) var count = 0

    package init() {}

    package mutating func append(_ bytes: RawSpan) {
        self.count += bytes.byteCount
        var taken = 0
        while taken < bytes.byteCount {
            let last = self.blocks.count - 1
            let room = last < 0 ? 0 : Self.blockSize - self.blocks[last].count
            guard room > 0 else {
                self.blocks.append(self.emptyBlock(for: bytes.byteCount - taken))
                continue
            }
            let count = min(room, bytes.byteCount - taken)
            self.blocks[last].append(bytes.extracting(taken..<(taken + count)))
            taken += count
        }
    }

    /// - Parameter count: bytes to be stored; the first block of short content is allocated smaller.
    private mutating func emptyBlock(for count: Int) -> [UInt8] {
        if let block = self.spare.popLast() { return block }
        var block: [UInt8] = []
        block.reserveCapacity(self.blocks.isEmpty ? min(count, Self.blockSize) : Self.blockSize)
        return block
    }

    /// Replaces a written block by the next one, or by an empty one at the end of the queue.
    package mutating func exchange(_ block: inout [UInt8]) {
        if block.capacity > 0, self.spare.count < Self.spareLimit {
            block.removeAll(keepingCapacity: true)
            self.spare.append(block)
        }
        block = self.blocks.popFirst() ?? []
        self.count -= block.count
    }
}
