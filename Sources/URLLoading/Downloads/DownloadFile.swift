import ByteKernels
import DequeModule
import Dispatch
import Foundation
import StreamTransport
import Synchronization

/// The file that a download goes to until it is whole: written on a queue of its own, while as much as `queueLimit`
/// waits. Usable from any thread.
package final class DownloadFile: Sendable {
    package enum Notice: Sendable {
        /// After `append` returned `false`: there is room again.
        case hasRoom
        /// Nothing more is written. Told once.
        case failed(DownloadFileFailure)
    }

    package typealias Completion = @Sendable (Result<Int64, DownloadFileFailure>) -> Void

    private struct State {
        var queue = WriteQueue()
        var isWriting = false
        var isFull = false
        var isClosed = false
        /// Bytes that are in the file.
        var length: Int64
        var failure: DownloadFileFailure?
        var finish: Completion?
        var observer: (@Sendable (Notice) -> Void)?
    }

    /// Bytes that may wait to be written, beside those that are being written.
    package static let queueLimit = 1 << 20

    package let url: URL
    private let descriptor: Int32
    private let queue = DispatchQueue(label: "URLLoading.download")
    private let state: Mutex<State>

    /// The file of an open descriptor, written from `offset` on; the descriptor is closed with it.
    package init(_ descriptor: Int32, url: URL, offset: Int64) {
        self.descriptor = descriptor
        self.url = url
        self.state = Mutex(State(length: offset))
    }

    deinit {
        _ = Foundation.close(self.descriptor)
    }

    /// Bytes written, those of a former attempt included.
    package var length: Int64 { self.state.withLock { $0.length } }

    /// Calls `work` on the file's queue. Replaces what was set before.
    package func observe(_ work: @escaping @Sendable (Notice) -> Void) {
        self.state.withLock { $0.observer = work }
    }

    /// Adds a copy of `bytes`. What is added behind the end, or a failure, is dropped.
    /// - Returns: whether more may come. If not, a notice follows; what comes all the same is taken.
    @discardableResult
    package func append(_ bytes: RawSpan) -> Bool {
        let (takesMore, begins) = self.state.withLock { state in
            guard !state.isClosed, state.failure == nil, bytes.byteCount > 0 else { return (!state.isFull, false) }
            state.queue.append(bytes)
            // Only the notice says that there is room again.
            if state.queue.count >= Self.queueLimit { state.isFull = true }
            defer { state.isWriting = true }
            return (!state.isFull, !state.isWriting)
        }
        if begins { self.queue.async { self.write() } }
        return takesMore
    }

    /// Closes the file when everything is written, and tells, on the file's queue, how long it is, or what went wrong.
    /// The file stays.
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

    /// Drops what waits, and removes the file.
    package func discard() {
        self.state.withLock { state in
            state.isClosed = true
            state.queue = WriteQueue()
            state.observer = nil
        }
        self.remove()
    }

    /// Removes the file if it is still where it was made.
    package func remove() {
        unlink(self.url.path)
    }

    // MARK: On the queue

    private func write() {
        var block: [UInt8] = []
        while true {
            let (offset, hasRoom) = self.state.withLock { state -> (Int64, (@Sendable (Notice) -> Void)?) in
                state.queue.exchange(&block)
                // Half of it: whoever waits is not woken for every block.
                guard state.isFull, state.queue.count <= Self.queueLimit / 2 else { return (state.length, nil) }
                state.isFull = false
                return (state.length, state.observer)
            }
            hasRoom?(.hasRoom)
            if block.isEmpty {
                if self.rest() { return }
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

    /// - Returns: whether there is nothing to be done.
    private func rest() -> Bool {
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
}

extension DownloadFile {
    /// A new and empty file among the temporary ones, for its owner's eyes only (mode 0600).
    package convenience init() throws(DownloadFileFailure) {
        var number = EEXIST
        // A name that is taken is rare, and not taken ten times in a row unless somebody means it.
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

    /// What a former attempt left, to be written on from `offset`; what is behind is cut off.
    /// - Throws: also when the file is shorter, is not ours alone, or is a link.
    package convenience init(resuming name: DownloadFileName, at offset: Int64) throws(DownloadFileFailure) {
        let descriptor = open(name.url.path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw DownloadFileFailure(step: .reopening, number: errno) }
        guard DescriptorReserve.process.admits(descriptor) else {
            _ = Foundation.close(descriptor)
            throw DownloadFileFailure(step: .reopening, number: EMFILE)
        }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG, facts.st_uid == geteuid(),
            facts.st_nlink == 1, offset >= 0, Int64(facts.st_size) >= offset, ftruncate(descriptor, off_t(offset)) == 0
        else {
            _ = Foundation.close(descriptor)
            throw DownloadFileFailure(step: .reopening, number: 0)
        }
        self.init(descriptor, url: name.url, offset: offset)
    }

    package var name: DownloadFileName? { DownloadFileName(self.url.lastPathComponent) }
}

/// The name of a download's file, which is directly in the folder for temporary files: whoever makes up a name cannot
/// lead us anywhere else.
package struct DownloadFileName: Hashable, Sendable {
    private static let beginning = "URLLoadingDownload_"
    private static let ending = ".tmp"
    private static let letters = Array("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
    private static let letterCount = 12

    package let text: String

    /// - Returns: `nil` for a name that we would not give.
    package init?(_ text: String) {
        guard text.hasPrefix(Self.beginning), text.hasSuffix(Self.ending) else { return nil }
        let middle = text.utf8.dropFirst(Self.beginning.utf8.count).dropLast(Self.ending.utf8.count)
        guard middle.count == Self.letterCount, middle.allSatisfy(Self.letters.contains) else { return nil }
        self.text = text
    }

    private init(middle: [UInt8]) {
        self.text = Self.beginning + String(decoding: middle, as: UTF8.self) + Self.ending
    }

    /// One that nobody can guess.
    static func random() -> DownloadFileName {
        Self(middle: (0..<Self.letterCount).map { _ in Self.letters.randomElement() ?? Self.letters[0] })
    }

    package var url: URL { FileManager.default.temporaryDirectory.appendingPathComponent(self.text) }
}

/// Why the file of a download cannot be had or written.
package struct DownloadFileFailure: Error, Equatable, Sendable {
    package enum Step: Sendable {
        case creating
        /// What a former attempt left.
        case reopening
        case writing
    }

    package let step: Step
    /// Of the system; 0 where a file is there that is not what was left.
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

    /// What the system said, for `NSUnderlyingErrorKey`.
    package var underlying: NSError? {
        self.number == 0 ? nil : NSError(domain: NSPOSIXErrorDomain, code: Int(self.number))
    }
}

extension DownloadFileFailure: CustomStringConvertible {
    package var description: String {
        let text = self.number == 0 ? "it is not the one that was left" : "\(SystemError(self.number))"
        return switch self.step {
        case .creating: "the file of the download cannot be made: \(text)"
        case .reopening: "the file of the download cannot be gone on with: \(text)"
        case .writing: "the file of the download cannot be written: \(text)"
        }
    }
}

/// Bytes that are to be written, in blocks of one size that are used again: however much passes through, no more memory
/// is taken than was once needed at a time.
package struct WriteQueue {
    /// Bytes in a block.
    package static let blockSize = 256 << 10
    /// Empty blocks that are kept.
    private static let spareLimit = 8

    /// None is empty, and all but the last are full.
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

    /// - Parameter count: bytes that are there for it; a small content needs no whole block.
    private mutating func emptyBlock(for count: Int) -> [UInt8] {
        if let block = self.spare.popLast() { return block }
        var block: [UInt8] = []
        block.reserveCapacity(self.blocks.isEmpty ? min(count, Self.blockSize) : Self.blockSize)
        return block
    }

    /// Takes back a block that was written, and gives the next; an empty one where there is none.
    package mutating func exchange(_ block: inout [UInt8]) {
        if block.capacity > 0, self.spare.count < Self.spareLimit {
            block.removeAll(keepingCapacity: true)
            self.spare.append(block)
        }
        block = self.blocks.popFirst() ?? []
        self.count -= block.count
    }
}
