import ByteKernels
import CLinux

/// Resources that the machine offers this process.
package enum Machine {
    /// Processors that this process may run on, at least 1.
    package static var cores: Int {
        Int(sluice_usable_cores())
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    package static func wallClockMilliseconds() -> Int64 {
        sluice_wall_clock_milliseconds()
    }

    /// From here on a block of a mebibyte or more goes back to the system as soon as it is freed.
    ///
    /// By itself the C library learns from the first few to keep such memory for the next ones. In a process that lasts, one
    /// minute of large messages would be held for good.
    package static func returnLargeBlocks() {
        mallopt(M_MMAP_THRESHOLD, 1 << 20)
        // Free memory kept at the end of the heap; the default of 128 KiB would be returned and requested again with
        // every few connections.
        mallopt(M_TRIM_THRESHOLD, 8 << 20)
    }

    /// Bytes of this process's memory that are free but not returned to the system; `nil` if unknown. Takes some 10 µs,
    /// and more with the number of free blocks.
    package static var idleMemory: Int? {
        guard let text = try? SystemFile.read("/proc/self/statm", limit: 4096) else { return nil }
        // proc(5): size, resident and shared, in pages.
        let pages = String(decoding: text, as: UTF8.self).split(separator: " ").prefix(3).compactMap { Int($0) }
        guard pages.count == 3 else { return nil }
        let heap = mallinfo2()
        return (pages[1] - pages[2]) * Int(getpagesize()) - Int(heap.uordblks) - Int(heap.hblkhd)
    }

    /// Time that the process's threads have used; `nil` if unknown.
    package static var processorTime: Duration? {
        guard let text = try? SystemFile.read("/proc/self/stat", limit: 4096) else { return nil }
        // proc(5): the name in parentheses may contain spaces; utime and stime are fields 14 and 15, in ticks.
        let fields = String(decoding: text, as: UTF8.self).split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 12, let user = Int64(fields[11]), let system = Int64(fields[12]) else { return nil }
        let ticks = max(1, Int64(sysconf(Int32(_SC_CLK_TCK))))
        return .milliseconds((user + system) * 1000 / ticks)
    }

    /// Sets how many connections wait at a listening socket for accept(2).
    package static func setBacklog(_ backlog: Int32, of listener: Descriptor) {
        _ = CLinux.listen(listener.number, backlog)
    }

    /// Gives memory that the C library keeps for later back to the system. Each arena is locked for as long as its own
    /// part takes.
    package static func returnIdleMemory() {
        malloc_trim(0)
    }

    /// `count` words from the kernel's generator, at most 32 in one call.
    package static func randomWords(_ count: Int) -> [UInt64] {
        unsafe [UInt64](unsafeUninitializedCapacity: count) { buffer, used in
            unsafe buffer.initialize(repeating: 0)
            let bytes = UnsafeMutableRawBufferPointer(buffer)
            if unsafe getentropy(bytes.baseAddress, bytes.count) != 0 {
                for index in 0..<count { unsafe buffer[index] = sluice_random() }
            }
            used = count
        }
    }
}

extension System {
    package func send(_ descriptor: Descriptor, _ head: LeadingBytes, _ bytes: RawSpan) -> Int {
        var whole = [UInt8](repeating: 0, count: head.count + bytes.byteCount)
        whole.withMutableRawSpan { _ = head.write(before: bytes, into: &$0) }
        return whole.withRawSpan { self.send(descriptor, $0) }
    }

    package func wallClockMilliseconds() -> Int64 {
        Machine.wallClockMilliseconds()
    }

    package func socketFile(at path: String) -> SocketFile? {
        SocketFile(at: path)
    }

    package func remove(_ file: SocketFile) {
        guard SocketFile(at: file.path) == file else { return }
        _ = unsafe unlink(file.path)
    }

    package func setMode(_ mode: UInt32, ofSocketFile path: String) -> SystemError? {
        guard !path.hasPrefix("@"), unsafe sluice_is_socket_file(path) == 1 else { return nil }
        return unsafe chmod(path, mode) == 0 ? nil : .last
    }

    /// Random words, 1 to 32 of them, fit for keys. A simulation gives seeded ones.
    package func randomWords(_ count: Int) -> [UInt64] {
        Machine.randomWords(max(1, min(32, count)))
    }
}

extension Descriptor {
    /// A second descriptor for the same socket, so that several loops can watch one listener.
    package func duplicated() -> Result<Descriptor, SystemError> {
        let number = sluice_duplicate(self.number)
        return number >= 0 ? .success(Descriptor(number)) : .failure(.last)
    }

    package func close() {
        _ = CLinux.close(self.number)
    }
}
