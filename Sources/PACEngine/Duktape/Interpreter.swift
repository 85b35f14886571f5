import CDuktape

/// An interpreter whose programs each run on a thread of their own, which is cancelled when their time is over. All its
/// memory is its own, so that what a cancelled program leaves behind can be freed. Used by one thread at a time.
///
/// The thread can be cancelled at any instruction, because Duktape has no other way out of a program that neither returns
/// nor allocates. It must therefore never be within a function of the C library that holds a lock. Of the functions that
/// Duktape calls these are: `malloc` and its kind, which `Arena` calls with cancellation held back, and `localtime_r`,
/// `gmtime_r`, `mktime`, `strptime` and `strftime`, all for `Date`, which `ProxyScriptDate` replaces. The others compute,
/// or format into a buffer of their caller.
@safe
final class Interpreter {
    private static let opened = Interpreter.open(ProxyScriptEngine.standardLibrary)

    private static func open(_ library: String) -> Result<sluice_duktape_functions, ProxyScriptFailure> {
        var functions = sluice_duktape_functions()
        if let missing = unsafe sluice_duktape_open(&functions, library) {
            return .failure(.libraryMissing(unsafe String(cString: missing)))
        }
        return .success(functions)
    }

    /// The interpreter's own bounds on recursion need about a third of this.
    private static let stackSize = 8 << 20

    private let job: UnsafeMutablePointer<InterpreterJob>

    /// - Parameter library: file name.
    @discardableResult
    static func openLibrary(_ library: String) throws(ProxyScriptFailure) -> sluice_duktape_functions {
        try (library == ProxyScriptEngine.standardLibrary ? self.opened : self.open(library)).get()
    }

    /// The system's time zone at this time, in seconds east of UTC.
    static var systemZone: Int {
        var (now, parts) = unsafe (time(nil), tm())
        return unsafe localtime_r(&now, &parts) == nil ? 0 : parts.tm_gmtoff
    }

    /// - Parameter memoryLimit: bytes.
    init(memoryLimit: Int, library: String) throws(ProxyScriptFailure) {
        let duktape = try Self.openLibrary(library)
        unsafe self.job = .allocate(capacity: 1)
        let arena = UnsafeMutablePointer<Arena>.allocate(capacity: 1)
        unsafe arena.initialize(to: Arena(limit: memoryLimit))
        unsafe self.job.initialize(to: InterpreterJob(duktape: duktape, arena: arena))
    }

    deinit {
        // Finalizers of the script's objects are not run: they would be its code, on this thread.
        unsafe self.job.pointee.arena.pointee.freeAll()
        unsafe self.job.pointee.arena.deallocate()
        unsafe self.job.deallocate()
    }

    /// Runs a program. After an error the interpreter must not be used any more.
    /// - Returns: the string that its last expression gives.
    func run(_ program: String, for timeLimit: Duration) throws(ProxyScriptFailure) -> String {
        var program = program
        let isDone = program.withUTF8 { source in
            unsafe self.job.pointee.source = source.baseAddress
            unsafe self.job.pointee.length = source.count
            return self.runThread(for: timeLimit)
        }
        guard try isDone.get() else { throw .outOfTime(timeLimit) }
        guard unsafe self.job.pointee.isFinished else { throw .outOfMemory }
        guard let result = unsafe self.job.pointee.result else { throw .failed("it cannot be run") }
        let bytes = unsafe UnsafeRawBufferPointer(start: result, count: self.job.pointee.resultLength)
        return unsafe String(decoding: bytes, as: UTF8.self)
    }

    /// - Returns: whether the thread ended in time.
    private func runThread(for timeLimit: Duration) -> Result<Bool, ProxyScriptFailure> {
        unsafe self.job.pointee.isFinished = false
        unsafe self.job.pointee.result = nil
        var attributes = pthread_attr_t()
        guard unsafe pthread_attr_init(&attributes) == 0 else { return .failure(.outOfMemory) }
        defer { _ = unsafe pthread_attr_destroy(&attributes) }
        _ = unsafe pthread_attr_setstacksize(&attributes, Self.stackSize)
        var thread = pthread_t()
        let status = unsafe pthread_create(
            &thread, &attributes,
            { argument in
                unsafe argument?.assumingMemoryBound(to: InterpreterJob.self).pointee.perform()
                return nil
            }, self.job)
        guard status == 0 else { return .failure(.outOfMemory) }
        var deadline = Self.instant(after: timeLimit)
        guard unsafe pthread_clockjoin_np(thread, nil, CLOCK_MONOTONIC, &deadline) != 0 else { return .success(true) }
        _ = pthread_cancel(thread)
        _ = pthread_join(thread, nil)
        return .success(unsafe self.job.pointee.isFinished)
    }

    private static func instant(after duration: Duration) -> timespec {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        let (seconds, attoseconds) = duration.components
        let nanoseconds = time.tv_nsec + Int(attoseconds / 1_000_000_000)
        return timespec(
            tv_sec: time.tv_sec + Int(seconds) + nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000)
    }
}

/// One running program: plain memory, because its thread may end at any instruction.
@unsafe
private struct InterpreterJob {
    let duktape: sluice_duktape_functions
    let arena: UnsafeMutablePointer<Arena>
    /// `nil` before the first program.
    var context: UnsafeMutableRawPointer?
    var source: UnsafePointer<UInt8>?
    var length = 0
    var isFinished = false
    /// Valid until the next program.
    var result: UnsafePointer<CChar>?
    var resultLength = 0

    init(duktape: sluice_duktape_functions, arena: UnsafeMutablePointer<Arena>) {
        unsafe self.duktape = duktape
        unsafe self.arena = arena
    }

    /// On the program's thread. A jump or a cancellation skips frames that own nothing.
    mutating func perform() {
        sluice_thread_cancellable(1)
        if unsafe self.context == nil { unsafe self.createContext() }
        if let context = unsafe self.context {
            unsafe self.duktape.set_top(context, 0)
            let text = unsafe UnsafeRawPointer(self.source)?.assumingMemoryBound(to: CChar.self)
            let status = unsafe self.duktape.eval_raw(context, text, self.length, sluice_duktape_safe_eval)
            if status == 0 { unsafe self.result = self.duktape.get_lstring(context, -1, &self.resultLength) }
        }
        sluice_thread_cancellable(0)
        unsafe self.isFinished = unsafe self.context != nil
    }

    private mutating func createContext() {
        unsafe self.context = unsafe self.duktape.create_heap(
            { unsafe Arena.resize(nil, to: $1, in: $0) }, { unsafe Arena.resize($1, to: $2, in: $0) },
            { _ = unsafe Arena.resize($1, to: 0, in: $0) }, self.arena,
            // Out of memory where no error can be raised. Nothing may return from here.
            { _, _ in pthread_exit(nil) })
    }
}

/// Blocks of memory that can all be freed at once, up to a number of bytes.
@unsafe
private struct Arena {
    /// Stands before each block.
    @unsafe
    private struct Header {
        var previous: UnsafeMutablePointer<Header>?
        var next: UnsafeMutablePointer<Header>?
        var size: Int
        /// Keeps what follows aligned to 16 bytes.
        var padding = 0
    }

    private let limit: Int
    /// Bytes of all blocks with their headers.
    private var used = 0
    private var first: UnsafeMutablePointer<Header>?

    init(limit: Int) {
        unsafe self.limit = limit
    }

    /// Allocates without a block, and frees with a size of 0.
    static func resize(
        _ block: UnsafeMutableRawPointer?, to size: Int, in arena: UnsafeMutableRawPointer?
    ) -> UnsafeMutableRawPointer? {
        // A thread that ends within the system's allocator would leave it locked.
        let state = sluice_thread_shield()
        defer { sluice_thread_restore(state) }
        return unsafe arena?.assumingMemoryBound(to: Arena.self).pointee.resize(block, to: size)
    }

    private mutating func resize(_ block: UnsafeMutableRawPointer?, to size: Int) -> UnsafeMutableRawPointer? {
        let overhead = unsafe MemoryLayout<Header>.size
        let old = unsafe block.map { unsafe ($0 - overhead).assumingMemoryBound(to: Header.self) }
        let oldSize = unsafe old.map { unsafe $0.pointee.size + overhead } ?? 0
        guard size > 0 else {
            if let old = unsafe old {
                unsafe self.remove(old)
                unsafe free(old)
            }
            return nil
        }
        guard unsafe size <= self.limit, unsafe size + overhead <= self.limit - (self.used - oldSize) else {
            return nil
        }
        let neighbours = unsafe (old?.pointee.previous, old?.pointee.next)
        guard let memory = unsafe realloc(old, size + overhead) else { return nil }
        let new = unsafe memory.assumingMemoryBound(to: Header.self)
        unsafe self.used += size + overhead - oldSize
        if unsafe old == nil {
            unsafe new.initialize(to: Header(previous: nil, next: self.first, size: size))
            unsafe self.first?.pointee.previous = unsafe new
            unsafe self.first = unsafe new
        } else {
            unsafe new.pointee.size = size
            if let previous = unsafe neighbours.0 {
                unsafe previous.pointee.next = unsafe new
            } else {
                unsafe self.first = unsafe new
            }
            unsafe neighbours.1?.pointee.previous = unsafe new
        }
        return unsafe memory + overhead
    }

    private mutating func remove(_ header: UnsafeMutablePointer<Header>) {
        let (previous, next) = unsafe (header.pointee.previous, header.pointee.next)
        if let previous = unsafe previous {
            unsafe previous.pointee.next = unsafe next
        } else {
            unsafe self.first = unsafe next
        }
        unsafe next?.pointee.previous = unsafe previous
        unsafe self.used -= header.pointee.size + MemoryLayout<Header>.size
    }

    mutating func freeAll() {
        while let header = unsafe self.first {
            unsafe self.first = unsafe header.pointee.next
            unsafe free(header)
        }
        unsafe self.used = 0
    }
}
