#if FUZZING
    import FuzzTargets
    import Glibc

    /// libFuzzer's loop. The program brings its own `main`, so libFuzzer is called as a library.
    enum FuzzingRun {
        fileprivate static let target: FuzzTarget = {
            let name = getenv("SLUICE_FUZZ_TARGET").map { String(cString: $0) } ?? ""
            guard let target = FuzzTarget(rawValue: name) else {
                print("SLUICE_FUZZ_TARGET=\(name) is none of \(FuzzTarget.allCases.map(\.rawValue))")
                exit(64)
            }
            return target
        }()

        /// - Returns: libFuzzer's exit code.
        static func start() -> CInt {
            var count = CommandLine.argc
            var arguments = CommandLine.unsafeArgv
            return runLibFuzzer(&count, &arguments) { testOneInput($0, $1) }
        }
    }

    /// Three words in and one out are passed the same way in Swift and in C.
    @_silgen_name("LLVMFuzzerRunDriver")
    private func runLibFuzzer(
        _ count: UnsafeMutablePointer<CInt>,
        _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
        _ body: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
    ) -> CInt

    /// Stops the process at a fault, which libFuzzer then writes down.
    @_cdecl("LLVMFuzzerTestOneInput")
    func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
        do throws(InvariantViolation) {
            try FuzzingRun.target.check(Array(UnsafeBufferPointer(start: bytes, count: count)))
        } catch {
            print("fault: \(error)")
            fflush(nil)
            abort()
        }
        return 0
    }
#endif
