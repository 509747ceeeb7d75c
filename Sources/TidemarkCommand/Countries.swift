#if Server
    /// Countries by their ISO 3166 codes: code; name; region; codes of the countries that share a land border.
    enum Countries {
        static let list = """
            AD;Andorra;Europe;ES FR
            AE;United Arab Emirates;Asia;OM SA
            AF;Afghanistan;Asia;CN IR PK TJ TM UZ
            AG;Antigua and Barbuda;Americas;
            AL;Albania;Europe;GR ME MK
            AM;Armenia;Asia;AZ GE IR TR
            AO;Angola;Africa;CD CG NA ZM
            AR;Argentina;Americas;BO BR CL PY UY
            AT;Austria;Europe;CH CZ DE HU IT LI SI SK
            AU;Australia;Oceania;
            AZ;Azerbaijan;Asia;AM GE IR RU TR
            BA;Bosnia and Herzegovina;Europe;HR ME RS
            BB;Barbados;Americas;
            BD;Bangladesh;Asia;IN MM
            BE;Belgium;Europe;DE FR LU NL
            BF;Burkina Faso;Africa;BJ CI GH ML NE TG
            BG;Bulgaria;Europe;GR MK RO RS TR
            BH;Bahrain;Asia;
            BI;Burundi;Africa;CD RW TZ
            BJ;Benin;Africa;BF NE NG TG
            BN;Brunei;Asia;MY
            BO;Bolivia;Americas;AR BR CL PE PY
            BR;Brazil;Americas;AR BO CO GY PE PY SR UY VE
            BS;Bahamas;Americas;
            BT;Bhutan;Asia;CN IN
            BW;Botswana;Africa;NA ZA ZM ZW
            BY;Belarus;Europe;LT LV PL RU UA
            BZ;Belize;Americas;GT MX
            CA;Canada;Americas;US
            CD;Congo (Kinshasa);Africa;AO BI CF CG RW SS TZ UG ZM
            CF;Central African Republic;Africa;CD CG CM SD SS TD
            CG;Congo (Brazzaville);Africa;AO CD CF CM GA
            CH;Switzerland;Europe;AT DE FR IT LI
            CI;Côte d'Ivoire;Africa;BF GH GN LR ML
            CL;Chile;Americas;AR BO PE
            CM;Cameroon;Africa;CF CG GA GQ NG TD
            CN;China;Asia;AF BT IN KG KP KZ LA MM MN NP PK RU TJ VN
            CO;Colombia;Americas;BR EC PA PE VE
            CR;Costa Rica;Americas;NI PA
            CU;Cuba;Americas;
            CV;Cabo Verde;Africa;
            CY;Cyprus;Asia;
            CZ;Czechia;Europe;AT DE PL SK
            DE;Germany;Europe;AT BE CH CZ DK FR LU NL PL
            DJ;Djibouti;Africa;ER ET SO
            DK;Denmark;Europe;DE
            DM;Dominica;Americas;
            DO;Dominican Republic;Americas;HT
            DZ;Algeria;Africa;LY MA ML MR NE TN
            EC;Ecuador;Americas;CO PE
            EE;Estonia;Europe;LV RU
            EG;Egypt;Africa;IL LY SD
            ER;Eritrea;Africa;DJ ET SD
            ES;Spain;Europe;AD FR MA PT
            ET;Ethiopia;Africa;DJ ER KE SD SO SS
            FI;Finland;Europe;NO RU SE
            FJ;Fiji;Oceania;
            FM;Micronesia;Oceania;
            FR;France;Europe;AD BE CH DE ES IT LU MC
            GA;Gabon;Africa;CG CM GQ
            GB;United Kingdom;Europe;IE
            GD;Grenada;Americas;
            GE;Georgia;Asia;AM AZ RU TR
            GH;Ghana;Africa;BF CI TG
            GM;Gambia;Africa;SN
            GN;Guinea;Africa;CI GW LR ML SL SN
            GQ;Equatorial Guinea;Africa;CM GA
            GR;Greece;Europe;AL BG MK TR
            GT;Guatemala;Americas;BZ HN MX SV
            GW;Guinea-Bissau;Africa;GN SN
            GY;Guyana;Americas;BR SR VE
            HN;Honduras;Americas;GT NI SV
            HR;Croatia;Europe;BA HU ME RS SI
            HT;Haiti;Americas;DO
            HU;Hungary;Europe;AT HR RO RS SI SK UA
            ID;Indonesia;Asia;MY PG TL
            IE;Ireland;Europe;GB
            IL;Israel;Asia;EG JO LB SY
            IN;India;Asia;BD BT CN MM NP PK
            IQ;Iraq;Asia;IR JO KW SA SY TR
            IR;Iran;Asia;AF AM AZ IQ PK TM TR
            IS;Iceland;Europe;
            IT;Italy;Europe;AT CH FR SI SM VA
            JM;Jamaica;Americas;
            JO;Jordan;Asia;IL IQ SA SY
            JP;Japan;Asia;
            KE;Kenya;Africa;ET SO SS TZ UG
            KG;Kyrgyzstan;Asia;CN KZ TJ UZ
            KH;Cambodia;Asia;LA TH VN
            KI;Kiribati;Oceania;
            KM;Comoros;Africa;
            KP;North Korea;Asia;CN KR RU
            KR;South Korea;Asia;KP
            KW;Kuwait;Asia;IQ SA
            KZ;Kazakhstan;Asia;CN KG RU TM UZ
            LA;Laos;Asia;CN KH MM TH VN
            LB;Lebanon;Asia;IL SY
            LI;Liechtenstein;Europe;AT CH
            LK;Sri Lanka;Asia;
            LR;Liberia;Africa;CI GN SL
            LS;Lesotho;Africa;ZA
            LT;Lithuania;Europe;BY LV PL RU
            LU;Luxembourg;Europe;BE DE FR
            LV;Latvia;Europe;BY EE LT RU
            LY;Libya;Africa;DZ EG NE SD TD TN
            MA;Morocco;Africa;DZ ES
            MC;Monaco;Europe;FR
            MD;Moldova;Europe;RO UA
            ME;Montenegro;Europe;AL BA HR RS
            MG;Madagascar;Africa;
            MH;Marshall Islands;Oceania;
            MK;North Macedonia;Europe;AL BG GR RS
            ML;Mali;Africa;BF CI DZ GN MR NE SN
            MM;Myanmar;Asia;BD CN IN LA TH
            MN;Mongolia;Asia;CN RU
            MR;Mauritania;Africa;DZ ML SN
            MT;Malta;Europe;
            MU;Mauritius;Africa;
            MV;Maldives;Asia;
            MW;Malawi;Africa;MZ TZ ZM
            MX;Mexico;Americas;BZ GT US
            MY;Malaysia;Asia;BN ID TH
            MZ;Mozambique;Africa;MW SZ TZ ZA ZM ZW
            NA;Namibia;Africa;AO BW ZA ZM
            NE;Niger;Africa;BF BJ DZ LY ML NG TD
            NG;Nigeria;Africa;BJ CM NE TD
            NI;Nicaragua;Americas;CR HN
            NL;Netherlands;Europe;BE DE
            NO;Norway;Europe;FI RU SE
            NP;Nepal;Asia;CN IN
            NR;Nauru;Oceania;
            NZ;New Zealand;Oceania;
            OM;Oman;Asia;AE SA YE
            PA;Panama;Americas;CO CR
            PE;Peru;Americas;BO BR CL CO EC
            PG;Papua New Guinea;Oceania;ID
            PH;Philippines;Asia;
            PK;Pakistan;Asia;AF CN IN IR
            PL;Poland;Europe;BY CZ DE LT RU SK UA
            PT;Portugal;Europe;ES
            PW;Palau;Oceania;
            PY;Paraguay;Americas;AR BO BR
            QA;Qatar;Asia;SA
            RO;Romania;Europe;BG HU MD RS UA
            RS;Serbia;Europe;BA BG HR HU ME MK RO
            RU;Russia;Europe;AZ BY CN EE FI GE KP KZ LT LV MN NO PL UA
            RW;Rwanda;Africa;BI CD TZ UG
            SA;Saudi Arabia;Asia;AE IQ JO KW OM QA YE
            SB;Solomon Islands;Oceania;
            SC;Seychelles;Africa;
            SD;Sudan;Africa;CF EG ER ET LY SS TD
            SE;Sweden;Europe;FI NO
            SG;Singapore;Asia;
            SI;Slovenia;Europe;AT HR HU IT
            SK;Slovakia;Europe;AT CZ HU PL UA
            SL;Sierra Leone;Africa;GN LR
            SM;San Marino;Europe;IT
            SN;Senegal;Africa;GM GN GW ML MR
            SO;Somalia;Africa;DJ ET KE
            SR;Suriname;Americas;BR GY
            SS;South Sudan;Africa;CD CF ET KE SD UG
            ST;São Tomé and Príncipe;Africa;
            SV;El Salvador;Americas;GT HN
            SY;Syria;Asia;IL IQ JO LB TR
            SZ;Eswatini;Africa;MZ ZA
            TD;Chad;Africa;CF CM LY NE NG SD
            TG;Togo;Africa;BF BJ GH
            TH;Thailand;Asia;KH LA MM MY
            TJ;Tajikistan;Asia;AF CN KG UZ
            TL;Timor-Leste;Asia;ID
            TM;Turkmenistan;Asia;AF IR KZ UZ
            TN;Tunisia;Africa;DZ LY
            TO;Tonga;Oceania;
            TR;Türkiye;Asia;AM AZ BG GE GR IQ IR SY
            TT;Trinidad and Tobago;Americas;
            TV;Tuvalu;Oceania;
            TZ;Tanzania;Africa;BI CD KE MW MZ RW UG ZM
            UA;Ukraine;Europe;BY HU MD PL RO RU SK
            UG;Uganda;Africa;CD KE RW SS TZ
            US;United States;Americas;CA MX
            UY;Uruguay;Americas;AR BR
            UZ;Uzbekistan;Asia;AF KG KZ TJ TM
            VA;Holy See;Europe;IT
            VE;Venezuela;Americas;BR CO GY
            VN;Viet Nam;Asia;CN KH LA
            VU;Vanuatu;Oceania;
            WS;Samoa;Oceania;
            YE;Yemen;Asia;OM SA
            ZA;South Africa;Africa;BW LS MZ NA SZ ZW
            ZM;Zambia;Africa;AO BW CD MW MZ NA TZ ZW
            ZW;Zimbabwe;Africa;BW MZ ZA ZM
            """
    }
#endif
