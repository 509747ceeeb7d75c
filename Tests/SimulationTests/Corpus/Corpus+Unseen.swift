/// What nobody noted: tables that were rebuilt, renamed, restored, and rows that cannot travel.
extension CorpusCase {
    static let unseen = [
        CorpusCase(
            name: "a column that goes before it was filled holds up nobody (I12)", app: "migrating",
            script: """
                world seed 1 devices 1 users 1 page 50
                flow
                0 edit renameColumn 0
                wait 31000
                0 edit restoreTable 0
                """),
        CorpusCase(
            name: "a table that is dropped and made anew is looked at by itself (I4)", app: "migrating",
            script: """
                world seed 1 devices 1 users 1 page 50
                1 edit replaceNote 0
                flow
                1 edit remake 0
                """),
        CorpusCase(
            name: "a rebuild that writes rows of its own sends them (I4)", app: "migrating",
            script: """
                world seed 1 devices 1 users 1 page 50
                flow
                2 edit rebuildWithout 1
                """),
        CorpusCase(
            name: "an edit that is given back with its scope is what it was, and fires no trigger again (I5)",
            app: "trigger",
            script: """
                world seed 1 devices 1 users 1 page 50
                1 edit manyItems 0
                flow
                user 1 scope 0 none
                1 edit moveItem 0
                flow
                """),
        CorpusCase(
            name: "a column that came while its record's insert was under way is sent (I2, I4)", app: "migrating",
            script: """
                world seed 1 devices 1 users 1 page 50
                flow
                0 edit replaceNote 0
                0 edit renameColumn 0
                pass 0 lost
                """),
        CorpusCase(
            name: "a row that was made unseen is taken back before the server was asked of it (I13)", app: "migrating",
            script: """
                world seed 1 devices 2 users 1 page 1
                1 edit addTag 2292976
                1 edit remake 14731387
                1 edit replaceNote 14731387
                flow
                server sweep
                0 edit titleNote 15295478
                1 edit deleteNote 1305930
                """),
        CorpusCase(
            name: "a delete that waits to be counted is (I13)", app: "trigger",
            script: """
                world seed 1 devices 1 users 1 page 50
                0 edit manyItems 0
                flow
                0 edit deleteItem 0
                """),
        CorpusCase(
            name: "a table that came back empty is the server's again, where that was not meant (I6)", app: "migrating",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit manyNotes 0
                flow
                0 edit restoreTable 0
                """),
        CorpusCase(
            name: "what comes back to a restored server is not drawn over a row that was made unseen (I13)",
            app: "migrating",
            script: """
                world seed 1 devices 1 users 1 page 50
                0 edit replaceTag 13280987
                flow
                wait 31000
                server restore
                0 edit rebuildTag 140721
                """),
        CorpusCase(
            name: "what comes back to a restored server does not hide a delete that was made unseen (I13)",
            app: "migrating",
            script: """
                world seed 1 devices 1 users 1 page 50
                0 edit addNote 0
                flow
                server restore
                wait 31000
                0 edit restoreTable 0
                """),
        CorpusCase(
            name: "a column is not filled from a history that the device does not know (I2, I11)", app: "migrating",
            script: """
                world seed 4 devices 2 users 1 page 50 shuffled
                flow
                wait 3600000
                1 edit rebuildWithout 0
                2 edit replaceNote 0
                flow
                wait 2000
                flow
                server restore
                1 edit restoreTable 0
                wait 691200000
                """),
        CorpusCase(
            name: "a row that was never sent, and makes room for the server's, is counted once (I13)", app: "task",
            script: """
                world seed 9630881283846353304 devices 2 users 1 page 50
                flow
                0 edit replaceProject 2548533
                wait 31000
                pass 0
                pass 0
                1 edit replaceProject 0
                pass 1
                """),
        CorpusCase(
            name: "an edit meets nobody where the row is again what it was made on (T1)", app: "trigger",
            script: """
                world seed 1 devices 2 users 1 page 50
                2 edit addItem 7265330
                2 backup
                flow
                1 sync
                pass 0 replaced
                1 edit manyItems 0
                2 edit titleItem 288508
                2 restore
                """),
        CorpusCase(
            name: "a row that was made anew beside a parked one, and deleted, is not counted (I13)", app: "task",
            script: """
                world seed 543450629075530104 devices 2 users 1 page 50
                1 edit replaceProject 2697224
                2 edit replaceProject 1
                flow
                1 edit addProject 0
                1 edit deleteProject 0
                """),
        CorpusCase(
            name: "a row made anew over its own delete keeps what it holds in a new column (I1)", app: "migrating",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit replaceNote 0
                flow
                0 edit deleteNote 0
                server fail 1
                flow
                0 edit renameColumn 0
                0 edit rebuildWithout 8231719
                0 edit renameColumn 0
                """),
        CorpusCase(
            name: "a record that was compared by another opening of the store stays at its version (I2)",
            app: "migrating",
            script: """
                world seed 1 devices 3 users 1 page 2
                1 edit manyNotes 1
                0 edit remake 0
                flow
                2 edit dropColumn 0
                0 edit writeNote 1
                0 edit titleNote 0
                1 edit renameTag 0
                0 edit rebuildWithout 5491158
                flow
                server kill 0
                1 edit replaceNote 1
                1 edit replaceNote 0
                0 edit renameColumn 0
                0 edit restoreTable 0
                flow
                """),
        CorpusCase(
            name: "a delete in sight stays one when the restored server lacks the record, too (I4)", app: "migrating",
            script: """
                world seed 1 devices 1 users 1 page 50
                1 edit replaceNote 0
                flow
                1 edit addColumn 0
                1 edit manyNotes 0
                pass 0
                server restore
                pass 0
                1 edit restoreTable 0
                1 edit rebuildWithout 0
                """),
        CorpusCase(
            name: "what is pushed to a restored server stays on screen where a column's fetch found the loss (I5)",
            app: "migrating",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit replaceNote 0
                flow
                server restore
                1 edit addColumn 0
                1 edit manyNotes 8054829
                """),
        CorpusCase(
            name: "a column is filled beneath what is on its way into it (I8)", app: "migrating",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit replaceNote 0
                flow
                0 edit manyNotes 0
                server fail 1
                pass 0
                pass 0
                0 edit deleteNote 0
                0 edit renameColumn 0
                0 edit rebuildWithout 8231719
                0 edit renameColumn 0
                """),
        CorpusCase(
            name: "a fetched column is newer than its row until the next page (I2)", app: "migrating",
            script: """
                world seed 1 devices 2 users 1 page 50
                2 edit renameColumn 0
                1 edit addNote 9426296
                flow
                2 edit renameColumn 0
                1 edit replaceNote 9426296
                """),
        CorpusCase(
            name: "what the app discards goes, where the server has deleted it or lost it (I4)", app: "migrating",
            script: """
                world seed 21963506872592237 devices 3 users 1 page 50 hurried
                0 edit renameTag 0
                0 edit manyNotes 0
                2 edit remake 0
                flow
                0 edit dropColumn 0
                2 edit colorTag 0
                2 edit deleteNote 0
                pass 0
                0 edit colorTag 0
                0 edit restoreTable 0
                0 edit rebuildWithout 0
                pass 0 old
                0 edit manyNotes 0
                server restore
                """),
        CorpusCase(
            name: "a row written unseen that a restored server has lost goes as a new one (I8)", app: "migrating",
            script: """
                world seed 1 devices 3 users 1 page 50 hurried
                1 edit replaceNote 0
                0 edit addColumn 0
                1 edit feelNote 0
                2 edit replaceTag 0
                2 edit addTag 0
                1 edit addNote 0
                0 edit addTag 0
                server clone
                flow
                2 edit rebuildWithout 0
                1 edit rebuildWithout 0
                1 edit manyNotes 1
                server exchange
                """),
        CorpusCase(
            name: "rows without a key stay when their scope goes (I13)", app: "migrating",
            script: """
                world seed 5 devices 1 users 1 page 50
                0 edit addTag 1
                0 edit addTag 2
                0 edit addTag 3
                0 edit addTag 4
                0 edit addTag 5
                0 edit addTag 6
                0 edit addTag 7
                0 edit addTag 8
                0 edit addTag 9
                0 edit addTag 10
                0 edit addTag 11
                0 edit addTag 12
                0 edit addTag 13
                0 edit addTag 14
                flow
                user 0 scope 0 none
                wait 31000
                0 sync
                flow
                """),
        CorpusCase(
            name: "a row of the first capture that was moved goes with the deletion of where it stood (I2)",
            app: "catalog",
            script: """
                world seed 1 devices 2 users 1 page 50
                3 edit moveShelf 12999750
                user 1 scope 2 none
                flow
                2 edit deleteShelf 1
                2 kill 0
                """),
        CorpusCase(
            name: "a row of the first capture that was set aside gives way when it comes back (I8)", app: "catalog",
            script: """
                world seed 1 devices 2 users 1 page 50
                user 0 scope 1 read
                flow
                wait 31000
                1 edit fillShelf 8591947
                user 0 scope 1 none
                pass 0
                pass 0
                """),
        CorpusCase(
            name: "a move is not done before its delete (I13)", app: "catalog",
            script: """
                world seed 1 devices 1 users 1 page 2
                flow
                0 edit moveShelf 0
                wait 31000
                pass 1 lost
                """),
        CorpusCase(
            name: "a row that comes to its place after its namesake was made and evicted here is not deleted (I2)",
            app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                1 edit addProject 1
                0 edit replaceProject 998425
                flow
                0 edit writeTask 0
                0 edit addProject 9008143
                0 edit replaceProject 6262251
                """),
        CorpusCase(
            name: "a push may sweep what it has replaced itself, where the window is small (I3)",
            app: "task",
            script: """
                world seed 1 devices 1 users 1 page 50
                1 edit writeTask 1
                flow
                server restore
                server node 0 settings 7509503
                1 edit setBody 1
                """),
        CorpusCase(
            name: "a delete in sight of a row that was written unseen is made on no row that this device knows (I2)",
            app: "migrating",
            script: """
                world seed 91000139 devices 2 users 1 page 50
                1 edit manyNotes 0
                flow
                server restore
                1 edit dropTriggers 0
                0 edit remake 16750585
                0 edit replaceNote 1
                0 edit restoreTable 0
                """),
    ]
}
