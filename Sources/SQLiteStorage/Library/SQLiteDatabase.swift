import CSQLite

/// One connection to a database of SQLite 3, whose library is opened with the first one. Used by one thread at a time.
///
/// The database writes ahead (WAL) and waits for the disk at the end of each transaction (`synchronous=FULL`): what
/// `transaction` has returned from is there after a loss of power too (sqlite.org, "Write-Ahead Logging").
@safe
package final class SQLiteDatabase {
    /// Debian's package is libsqlite3-0.
    package static let standardLibrary = "libsqlite3.so.0"
    /// How long another process may hold the lock, in milliseconds.
    private static let busyTimeout: Int32 = 5000

    private let path: String
    private let sqlite: sluice_sqlite_functions
    private let database: OpaquePointer
    /// Prepared statements by their text: those of the program's few constant strings.
    private var statements: [String: Statement] = [:]

    /// Opens or creates the file, which only its owner can read, as the files of its log.
    /// - Throws: where the library is missing, or the file cannot be used.
    package init(_ path: String, library: String = SQLiteDatabase.standardLibrary) throws(SQLiteFailure) {
        var functions = sluice_sqlite_functions()
        if let missing = unsafe sluice_sqlite_load(&functions, library) {
            let function = unsafe String(cString: missing)
            throw SQLiteFailure(
                "SQLite cannot be used: \(function.isEmpty ? library : function) is missing; install the package libsqlite3-0"
            )
        }
        unsafe sluice_sqlite_make_private(path)
        var database: OpaquePointer?
        let status = unsafe functions.open(path, &database, Int32(SLUICE_SQLITE_OPEN_FLAGS), nil)
        guard status == Int32(SLUICE_SQLITE_OK), let database = unsafe database else {
            let failure = unsafe Self.failure(path, functions, database, status)
            _ = unsafe functions.close(database)
            throw failure
        }
        self.path = path
        self.sqlite = functions
        unsafe self.database = database
        _ = unsafe functions.busy_timeout(database, Self.busyTimeout)
        try self.execute("PRAGMA journal_mode=WAL")
        try self.execute("PRAGMA synchronous=FULL")
    }

    deinit {
        for statement in self.statements.values { _ = unsafe self.sqlite.finalize(statement.pointer) }
        _ = unsafe self.sqlite.close(self.database)
    }

    private func failure() -> SQLiteFailure {
        unsafe Self.failure(self.path, self.sqlite, self.database, 0)
    }

    /// - Parameter status: the code of the failure if there is no `database`.
    private static func failure(
        _ path: String, _ sqlite: sluice_sqlite_functions, _ database: OpaquePointer?, _ status: Int32
    ) -> SQLiteFailure {
        let text = unsafe database.flatMap { unsafe sqlite.error_text($0) }.map { unsafe String(cString: $0) }
        let code = unsafe database.map { unsafe sqlite.error_code($0) } ?? status
        return SQLiteFailure("\(path): \(text ?? "code \(code)")", remedy: SQLiteFailure.remedy(code))
    }

    /// Runs statements without parameters and results.
    package func execute(_ sql: String) throws(SQLiteFailure) {
        guard unsafe self.sqlite.execute(self.database, sql, nil, nil, nil) == Int32(SLUICE_SQLITE_OK) else {
            throw self.failure()
        }
    }

    /// Runs `body` in one transaction: all that it writes is written, or nothing.
    package func transaction(_ body: () throws(SQLiteFailure) -> Void) throws(SQLiteFailure) {
        try self.execute("BEGIN IMMEDIATE")
        do throws(SQLiteFailure) {
            try body()
            try self.execute("COMMIT")
        } catch {
            try? self.execute("ROLLBACK")
            throw error
        }
    }

    /// Runs one statement.
    /// - Parameters:
    ///   - sql: one of the program's constant statements; kept prepared.
    ///   - row: gets the columns of each row of the result.
    package func run(
        _ sql: String, _ values: [SQLiteValue] = [], row: ([SQLiteValue]) -> Void = { _ in }, columns: [ColumnKind] = []
    ) throws(SQLiteFailure) {
        let statement = try unsafe self.prepared(sql)
        defer {
            _ = unsafe self.sqlite.reset(statement)
            _ = unsafe self.sqlite.clear_bindings(statement)
        }
        for (index, value) in values.enumerated() {
            guard unsafe self.bind(value, to: statement, at: Int32(index) + 1) == Int32(SLUICE_SQLITE_OK) else {
                throw self.failure()
            }
        }
        while true {
            switch unsafe self.sqlite.step(statement) {
            case Int32(SLUICE_SQLITE_DONE): return
            case Int32(SLUICE_SQLITE_ROW):
                row(columns.enumerated().map { unsafe self.column($0.element, Int32($0.offset), of: statement) })
            default: throw self.failure()
            }
        }
    }

    @safe
    private struct Statement {
        let pointer: OpaquePointer

        init(_ pointer: OpaquePointer) {
            unsafe self.pointer = pointer
        }
    }

    package enum ColumnKind {
        case integer
        case bytes
    }

    private func prepared(_ sql: String) throws(SQLiteFailure) -> OpaquePointer {
        if let statement = self.statements[sql] { return unsafe statement.pointer }
        var statement: OpaquePointer?
        guard unsafe self.sqlite.prepare(self.database, sql, -1, &statement, nil) == Int32(SLUICE_SQLITE_OK),
            let statement = unsafe statement
        else { throw self.failure() }
        self.statements[sql] = unsafe Statement(statement)
        return unsafe statement
    }

    private func bind(_ value: SQLiteValue, to statement: OpaquePointer, at index: Int32) -> Int32 {
        switch value {
        case .integer(let integer): return unsafe self.sqlite.bind_integer(statement, index, integer)
        case .bytes(let bytes):
            let functions = self.sqlite
            return unsafe bytes.withUnsafeBytes { bytes in
                unsafe withUnsafePointer(to: functions) { functions in
                    unsafe sluice_sqlite_bind_copy(
                        functions, statement, index, bytes.baseAddress, Int32(clamping: bytes.count))
                }
            }
        }
    }

    private func column(_ kind: ColumnKind, _ index: Int32, of statement: OpaquePointer) -> SQLiteValue {
        switch kind {
        case .integer: return .integer(unsafe self.sqlite.column_integer(statement, index))
        case .bytes:
            guard let start = unsafe self.sqlite.column_blob(statement, index) else { return .bytes([]) }
            let count = unsafe Int(self.sqlite.column_bytes(statement, index))
            return unsafe .bytes(Array(UnsafeRawBufferPointer(start: start, count: max(0, count))))
        }
    }
}
