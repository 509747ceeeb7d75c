extension CorpusCase {
    /// Worlds of eighty steps in which a server is lost more than once, or where rows lie in several scopes.
    static let losses = [
        CorpusCase(
            name: "what is on its way back to a scope lies over the row that comes up there (I4)",
            app: "shelf",
            script: """
                world seed 1 devices 3 users 1 page 50 hurried
                flow
                2 edit addBox 12315134
                server clone
                2 edit moveBox 15830484
                flow
                0 edit addBox 12932016
                0 clone 1
                flow
                server exchange
                server clone
                wait 31000
                pass 2 replaced
                2 edit deleteBox 13952231
                flow
                server exchange
                """),
        CorpusCase(
            name: "so, too, over one that a snapshot brings",
            app: "shelf",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit addBox 12092754
                flow
                0 edit addBox 1754343
                0 edit deleteBox 0
                pass 0
                pass 0
                pass 0
                1 edit labelBox 14974147
                server clone
                0 edit moveBox 1332938
                pass 1
                pass 0
                server exchange
                pass 0
                pass 0
                pass 1
                1 edit addBox 1
                server kill 15
                pass 0
                pass 0
                0 edit deleteBox 12092754
                pass 1
                pass 2
                pass 0
                pass 0
                pass 0
                pass 0
                server exchange
                """),
        CorpusCase(
            name: "a delete on its way back lies over the row that comes once another scope let go of the record (I4)",
            app: "catalog",
            script: """
                world seed 1 devices 2 users 1 page 1
                flow
                0 edit moveShelf 9856900
                0 edit moveShelf 0
                flow
                0 clone 1
                flow
                server restore
                1 edit deleteShelf 1346416
                """),
        CorpusCase(
            name: "records fetched by name, of a history that is lost, do not keep the present ones out (I4)",
            app: "order",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 clone 1
                pass 0
                pass 1
                1 edit shareAtOnce 0
                pass 2
                pass 0
                pass 1
                pass 2
                pass 0
                pass 0
                pass 0
                server restore
                pass 0
                0 edit shareAtOnce 0
                pass 1
                pass 0
                pass 0
                pass 0
                server restart
                pass 1
                pass 1
                pass 1
                pass 0
                server restore
                pass 0
                pass 0
                0 edit shareAtOnce 0
                pass 0
                pass 1
                pass 0
                pass 0
                pass 0
                pass 0
                server restore
                """),
        CorpusCase(
            name: "a device whose verdict is beyond its checkpoint is not in sync yet",
            app: "order",
            script: """
                world seed 1 devices 1 users 1 page 2
                flow
                2 edit orderTogether 0
                pass 0
                pass 0 old
                server clone
                2 edit renameCustomer 5502076
                flow
                server exchange
                """),
        CorpusCase(
            name: "an edit that gives way to one of which nobody was told has written nothing",
            app: "notebook",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit moodAdd 0
                1 edit decisionAdd 0
                flow
                server kill 5
                1 edit decisionAdd 0
                1 edit moodSecond 0
                flow
                0 edit moodSecond 0
                """),
        CorpusCase(
            name: "a row made here has no other scope's row below it",
            app: "shelf",
            script: """
                world seed 1 devices 2 users 1 page 50
                1 edit addBox 1
                flow
                1 edit moveBox 11508160
                0 edit deleteBox 1
                0 edit addBox 13180264
                """),
        CorpusCase(
            name: "a history that goes away between a device's question and its snapshot is noticed (I11)",
            app: "notebook",
            script: """
                world seed 1 devices 3 users 1 page 50
                flow
                0 kill 0
                wait 31000
                pass 0
                pass 0
                pass 0
                1 edit moodAdd 0
                pass 0
                pass 0
                0 start
                pass 0
                0 edit addNote 0
                pass 0
                pass 0
                pass 0
                server restore
                pass 0
                pass 0
                pass 0
                pass 0
                pass 0
                pass 0
                pass 0 old
                pass 0
                pass 0
                pass 0 replaced
                1 edit moodDelete 0
                server restore
                """),
        CorpusCase(
            name: "a record whose name a store has forgotten is deleted by its device's word (I1)",
            app: "order",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit deleteCustomer 0
                2 edit orderAtOnce 0
                flow
                0 edit order 0
                1 edit addCustomer 0
                server clock -31536000000
                flow
                2 edit deleteCustomer 0
                2 edit order 0
                0 edit shareOrder 0
                server clock 60000
                wait 691200000
                1 edit order 0
                pass 0
                1 edit shareAtOnce 0
                1 edit addCustomer 0
                server compact 7200000
                server fail 1
                1 edit deleteCustomer 0
                flow
                """),
        CorpusCase(
            name: "a temporary id is not forgotten while its record is on its way (I4)",
            app: "order",
            script: """
                world seed 1 devices 3 users 1 page 50
                server clone
                2 edit shareAtOnce 0
                pass 0
                pass 0
                pass 0
                3 edit orderTogether 0
                pass 0
                pass 2
                server exchange
                user 0 scope 0 read
                flow
                3 clock 31536000000
                wait 31000
                flow
                """),
        CorpusCase(
            name: "an edit that says what is there already is not the one that said it first",
            app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                flow
                1 edit replaceProject 1
                server kill 10
                0 edit addProject 6540924
                flow
                1 edit moveSlug 14054679
                """),
        CorpusCase(
            name: "an app that decides about a deleted record makes it as it was when they met",
            app: "notebook",
            script: """
                world seed 1 devices 2 users 1 page 50
                flow
                0 edit decisionAdd 5415480
                1 edit decisionAdd 3686336
                flow
                0 edit decisionSecond 3686336
                pass 0
                1 edit decisionDelete 7211635
                pass 0 old
                """),
        CorpusCase(
            name: "an edit back to what a deleted record was has nothing to tell",
            app: "ledger",
            script: """
                world seed 1 devices 2 users 1 page 50
                2 edit transfer 0
                0 edit correct 0
                2 edit transfer 0
                0 edit transfer 3433289
                2 edit cancel 1
                0 edit cancel 1
                2 edit transfer 0
                flow
                1 edit cancel 0
                0 edit correct 3260188
                0 edit correct 3408358
                """),
        CorpusCase(
            name: "what became of an edit may be told to the copy of the file that it was made in",
            app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                3 edit replaceProject 0
                flow
                2 edit renameProject 0
                1 edit replaceProject 2977280
                pass 0 lost
                2 edit writeTask 1
                2 clone 1
                """),
        CorpusCase(
            name: "an edit on top of what was refused, and forgotten before anybody heard, is refused",
            app: "ledger",
            script: """
                world seed 1 devices 2 users 1 page 50
                1 edit transfer 0
                pass 0 cut 766
                pass 0
                wait 2000
                pass 0
                pass 1
                wait 691200000
                pass 1 replaced
                server compact 7200000
                1 edit correct 4759415
                """),
        CorpusCase(
            name: "an edit back, on top of what another copy of the file was told, is one (I1)",
            app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                2 edit addProject 1
                flow
                1 edit replaceProject 4297939
                1 sync
                1 clone 0
                0 edit moveSlug 0
                """),
        CorpusCase(
            name: "what was made anew, on top of a delete whose answer another copy of the file got, is whole (I5)",
            app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit addProject 15805701
                flow
                0 edit deleteProject 0
                0 clone 1
                0 edit addProject 0
                1 edit replaceProject 1164566
                """),
        CorpusCase(
            name: "what a store that was only opened anew has taken is not brought back to it (I8)",
            app: "order",
            script: """
                world seed 1 devices 2 users 2 page 50
                server kill 4
                pass 1
                1 edit orderAtOnce 0
                pass 1
                pass 1
                1 edit orderAtOnce 0
                flow
                1 sync
                pass 0
                pass 0
                1 clone 0
                """),
        CorpusCase(
            name: "of two edits that were set aside one after the other the later one stands (I1)",
            app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                pass 0
                pass 0
                pass 0
                pass 0
                1 sync
                pass 0
                pass 0
                pass 0
                1 edit replaceProject 1
                pass 0
                user 0 scope 0 none
                pass 0
                pass 0
                pass 0
                pass 0
                pass 0
                1 edit addProject 1
                pass 0 old
                flow
                """),
        CorpusCase(
            name: "an edit that finds itself done in a part of a lost record is told what that is (I2)", app: "ledger",
            script: """
                world seed 1 devices 2 users 1 page 1
                1 edit transfer 801854
                flow
                1 edit transfer 0
                0 edit transfer 1
                pass 0
                pass 0
                server restore
                0 edit correct 6309208
                0 clone 1
                """),
    ]
}
